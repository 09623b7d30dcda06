//! Plans, tasks and memory on SQLite or PostgreSQL.
