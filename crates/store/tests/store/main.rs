//! The knowledge base, seen from outside.

mod caches;
mod documents;
mod generations;
mod links;
mod model;
mod places;
mod processes;
mod support;
mod verify;
