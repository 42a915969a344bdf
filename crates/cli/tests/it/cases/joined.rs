//! Requests that belong together, and where caches broke.
