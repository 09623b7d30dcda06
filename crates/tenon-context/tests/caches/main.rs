//! Caches from the outside: what is written, what is refused, what is answered.

mod boundary;
mod fixture;
mod format;
mod library;
mod model;
mod replacing;
