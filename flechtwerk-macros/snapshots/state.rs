const _: () = {
    impl ::flechtwerk::glue::StateValue for Count {
        const VERSION: u32 = 2u32;
        const NAME: &'static str = "Count";
    }
};
