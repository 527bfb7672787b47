//! Compiles each file under `fail/`, which must not compile, and compares what rustc says with the `.stderr` beside it.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("fail/*/*.rs");
}
