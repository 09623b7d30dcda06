//! Document caches: build, verify, inspect, resolve.
