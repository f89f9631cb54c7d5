//! What an auditor wants to see: that what is forbidden fails, and what a process holds open.

mod attempts;
mod descriptors;
mod machine;

pub use attempts::{Attempt, Outcome, file_attempts, network_attempts};
pub use descriptors::{Descriptor, DescriptorKind, open_descriptors};
pub use machine::{Interface, interfaces, kernel_status, libraries, network_crates_in};
