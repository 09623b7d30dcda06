-- Owns the tables; logs in only to upgrade the schema.
CREATE ROLE tenon_owner LOGIN;
-- A group: people are members of it.
CREATE ROLE tenon_user NOLOGIN;
CREATE ROLE ada LOGIN IN ROLE tenon_user;
CREATE ROLE bob LOGIN IN ROLE tenon_user;

-- By default, every role may connect to a database and make temporary tables in it.
DO $$
BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO tenon_owner, tenon_user', current_database());
END
$$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO tenon_owner;
GRANT USAGE ON SCHEMA public TO tenon_user;
