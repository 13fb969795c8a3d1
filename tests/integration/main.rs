//! One binary: it links once, and all its tests share one PostgreSQL server.
