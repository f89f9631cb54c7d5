//! Files, folders and streams to documents: what a file is, its text, and where its pages and headings are.
//!
//! [`read`] gives the documents of files, folders and standard input one at a time. What a file is is told by its content.
//! Text, Markdown and source code are documents as they stand; of everything else the text is taken out, with its structure:
//! a blank line between blocks, `#` before headings, `| a | b |` for rows of tables, pages and headings in the outline.
//!
//! Architecture invariants: offsets of the outline are true and lie on character borders; what can't be decoded becomes
//! U+FFFD and is reported, as does NUL; nothing is left out in silence but what no reader of the document sees, and what
//! repeats on every page; nothing is unpacked beyond a limit.

mod archive;
pub mod child;
mod decode;
mod delimited;
mod draft;
mod epub;
mod extract;
mod gibberish;
mod hidden;
mod html;
mod item;
mod json;
mod kind;
mod language;
mod mail;
mod markdown;
mod office;
mod package;
mod parsed;
mod pdf;
mod read;
mod records;
mod source;
mod xml;

pub use decode::DecodeWarning;
pub use item::{ExtractError, Item, ReadError, Remark, SkipReason};
pub use read::{FileState, Progress, Reader, files, read, total_bytes};
