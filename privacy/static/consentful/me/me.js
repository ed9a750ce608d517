// What makes a person's page nicer. Everything works without it, through plain forms.
"use strict";

// A decision is sent in place: the page keeps its scroll position and the button its focus.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  const button = event.submitter;
  if (button && button.getAttribute("aria-disabled") === "true") {
    event.preventDefault(); // it is so already
    return;
  }
  if (form.dataset.sent) {
    event.preventDefault(); // a second press while the first is on its way
    return;
  }
  form.dataset.sent = "yes";
  if (!("live" in form.dataset)) {
    return;
  }
  event.preventDefault();
  try {
    const body = new URLSearchParams(new FormData(form, button));
    const answer = await fetch(form.action, { method: "POST", body });
    const here = new URL(answer.url).pathname === location.pathname;
    if (!answer.ok || !here) {
      throw new Error("not in place");
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    replaceMain(page, button);
  } catch {
    // The plain way, whatever happened: a decision counts once, however often it is sent.
    const kept = document.createElement("input");
    kept.type = "hidden";
    kept.name = button.name;
    kept.value = button.value;
    form.append(kept);
    form.submit();
  }
});

function replaceMain(page, button) {
  const main = document.getElementById("main");
  const open = [...main.querySelectorAll("details[open]")].map((one) => one.closest("[id]").id);
  const said = main.querySelector("[role=status]"); // stays, so that it is read aloud
  const next = page.getElementById("main");
  const saying = next.querySelector("[role=status]");
  const top = button.getBoundingClientRect().top;
  main.replaceChildren(said, ...[...next.children].filter((one) => one !== saying));
  said.replaceChildren(...saying.childNodes);
  for (const id of open) {
    document.getElementById(id)?.querySelector("details.history")?.setAttribute("open", "");
  }
  const again = document.getElementById(button.id);
  if (again) {
    again.focus({ preventScroll: true });
    window.scrollBy(0, again.getBoundingClientRect().top - top);
  }
}

// A form that the browser shows again from its memory may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
  }
});

// Text that was typed and not sent is not lost by mistake.
window.addEventListener("beforeunload", (event) => {
  for (const form of document.querySelectorAll("form[data-guard]")) {
    const isTouched = [...form.elements].some((one) =>
      one.type === "radio" ? one.checked !== one.defaultChecked : "defaultValue" in one && one.value !== one.defaultValue,
    );
    if (isTouched && !form.dataset.sent) {
      event.preventDefault();
    }
  }
});
