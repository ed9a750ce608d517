-- Who acts for a person that does not act alone.

ALTER TABLE consentful_guardianship ADD CONSTRAINT consentful_guardianship_subject
    FOREIGN KEY (tenant_id, subject_id) REFERENCES consentful_subject (tenant_id, id) NOT VALID;
ALTER TABLE consentful_guardianship VALIDATE CONSTRAINT consentful_guardianship_subject;
SELECT consentful_attach('consentful_guardianship', 'guardianship');
SELECT consentful_isolate('consentful_guardianship');
