# The same recipes as `cargo xtask`, in a line each.

# Install the models of a profile: tiny, small or base
setup profile="base":
    cargo xtask setup --profile {{profile}}

# From a fresh checkout to a cited answer
demo profile="base":
    cargo xtask demo --profile {{profile}}

# Everything that continuous integration runs
test:
    cargo xtask test

# An optimised program in target/release
build:
    cargo build --release --package anchorite-cli
