-- Ids of events come from a sequence that belongs to no table: when the table becomes a part of a
-- larger one (sql/partitions.sql), the numbers go on, and nobody who just took one has to wait.
ALTER TABLE consentful_audit_event ALTER COLUMN id DROP IDENTITY;
CREATE SEQUENCE consentful_audit_event_id_seq;
ALTER TABLE consentful_audit_event ALTER COLUMN id
    SET DEFAULT nextval('consentful_audit_event_id_seq');
