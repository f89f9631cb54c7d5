//! Takes files apart for a parent that names this program: for those who build on the library and have no program of
//! their own that can do it.

fn main() -> std::io::Result<()> {
    anchorite_formats::child::serve()
}
