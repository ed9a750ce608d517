from django.db import migrations, models


class Migration(migrations.Migration):
    """A product changes its users as it likes: the column and the table get other names."""

    dependencies = [("accounts", "0001_accounts")]

    operations = [
        migrations.RenameField("user", "nickname", "email"),
        migrations.AlterField(
            "user", "email", models.EmailField(db_column="mail", max_length=254, unique=True)
        ),
        migrations.AlterModelTable("user", "people"),
    ]
