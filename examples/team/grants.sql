-- After `tenon store migrate` by the owner.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO tenon_user;
-- Only the owner changes the version of the schema.
REVOKE INSERT, UPDATE, DELETE ON tenon_schema FROM tenon_user;
