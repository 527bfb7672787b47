pub async fn poll(src: Record<Sources>) -> Result<Next> {
    body(src)
}
::core::compile_error! {
    "`suspend` is not an argument of `extractor`; did you mean `suspended`?"
}
::core::compile_error! {
    "an extractor says how long it rests when its source has nothing new: `poll_interval = \"30s\"`"
}
::core::compile_error! {
    "a config is polled again and again, so it comes by reference: write `&Record<Sources>`"
}
#[doc(hidden)]
#[allow(non_camel_case_types, missing_docs, unreachable_pub, dead_code)]
pub struct poll {}
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
    impl ::flechtwerk::glue::Listable for poll {
        const LISTED: ::flechtwerk::glue::Listed = ::flechtwerk::glue::listed::<
            __Stage,
        >();
    }
    impl ::flechtwerk::glue::Stage for __Stage {
        const INFO: &'static ::flechtwerk::glue::StageInfo = &::flechtwerk::glue::StageInfo {
            name: "poll",
            id: concat!(module_path!(), "::", "poll"),
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
