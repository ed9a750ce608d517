-- Readings belong to one tenant, and go with their record: whether it is deleted, expires or is
-- forgotten. The table is new, so checking what stands in it takes no time.

ALTER TABLE consentful_reading
    ADD CONSTRAINT consentful_reading_preference
        FOREIGN KEY (tenant_id, preference_id) REFERENCES consentful_preference (tenant_id, id)
        ON DELETE CASCADE NOT VALID;
ALTER TABLE consentful_reading
    ADD CONSTRAINT consentful_reading_of_subject
        FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id) NOT VALID;
ALTER TABLE consentful_reading VALIDATE CONSTRAINT consentful_reading_preference;
ALTER TABLE consentful_reading VALIDATE CONSTRAINT consentful_reading_of_subject;

SELECT consentful_isolate('consentful_reading');
