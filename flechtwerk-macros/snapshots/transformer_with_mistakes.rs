pub(crate) fn count(word: Record<Words>) -> Result {
    body(word)
}
::core::compile_error! {
    "a transformer reads at least one topic: `inputs = [Topic]`"
}
::core::compile_error! {
    "a stage is `async`, so that the records of other keys go on while one waits: write `async fn count`"
}
#[doc(hidden)]
#[allow(non_camel_case_types, missing_docs, unreachable_pub, dead_code)]
pub(crate) struct count {}
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    deprecated,
    non_camel_case_types,
    refining_impl_trait
)]
const _: () = {
    struct __Stage;
    impl ::flechtwerk::glue::Listable for count {
        const LISTED: ::flechtwerk::glue::Listed = ::flechtwerk::glue::listed::<
            __Stage,
        >();
    }
    impl ::flechtwerk::glue::Stage for __Stage {
        const INFO: &'static ::flechtwerk::glue::StageInfo = &::flechtwerk::glue::StageInfo {
            name: "count",
            id: concat!(module_path!(), "::", "count"),
            application_id: ::core::option::Option::None,
            inputs: &[],
            parts: &[],
            shared: &[],
            start: ::flechtwerk::glue::Start::Earliest,
            order: ::flechtwerk::glue::Order::Inputs,
            custom_key: false,
            headers: true,
            extractor: ::core::option::Option::None,
            policy: ::flechtwerk::glue::Policy::CRASH,
            stub: true,
        };
        type Input = ();
        type Topics = ();
        type Slots = ();
        type Shared = ();
        fn call(_: (), _: &mut (), _: &()) -> ::flechtwerk::glue::Ready {
            ::flechtwerk::glue::ready()
        }
    }
};
