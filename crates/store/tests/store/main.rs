//! The knowledge base, seen from outside.

mod caches;
#[cfg(unix)]
mod crashes;
#[cfg(unix)]
mod disk;
mod documents;
mod formats;
mod generations;
mod history;
mod links;
mod model;
mod places;
mod processes;
mod support;
mod verify;
mod views;
