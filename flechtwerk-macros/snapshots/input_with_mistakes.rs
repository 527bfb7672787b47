::core::compile_error! {
    "`#[derive(Input)]` goes on an enum with one variant for each topic; a stage with one input takes `Record<Topic>` itself"
}
const _: () = {
    impl<__R> ::flechtwerk::glue::Accepts<__R> for Trip {
        fn accept(_: &::flechtwerk::glue::RawRecord) -> ::flechtwerk::glue::Tried<Self> {
            ::flechtwerk::glue::no_input()
        }
    }
    impl ::flechtwerk::glue::Input for Trip {
        const TOPICS: &'static [&'static ::flechtwerk::glue::TopicInfo] = &[];
    }
};
