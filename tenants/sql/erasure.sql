-- Names that were forgotten: captured like every row of state, and shown to their tenant alone.
SELECT consentful_attach('consentful_tombstone', 'tombstone', 'returned');
SELECT consentful_isolate('consentful_tombstone');
