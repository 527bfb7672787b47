pub static DEMO: flechtwerk::glue::Pipeline = {
    #[allow(non_camel_case_types)]
    type __S0 = count;
    #[cfg(feature = "other")]
    #[allow(non_camel_case_types)]
    type __S1 = a::b;
    const __ENTRIES: &[flechtwerk::glue::Entry] = &[
        flechtwerk::glue::Entry {
            ordinal: 0usize,
            listed: <__S0 as flechtwerk::glue::Listable>::LISTED,
        },
        #[cfg(feature = "other")]
        flechtwerk::glue::Entry {
            ordinal: 1usize,
            listed: <__S1 as flechtwerk::glue::Listable>::LISTED,
        },
    ];
    const __RESOURCES: &[flechtwerk::glue::ResourceEntry] = &[];
    const __TABLE: &flechtwerk::glue::Table<2usize> = &flechtwerk::glue::check::<
        2usize,
        { flechtwerk::glue::places(__ENTRIES) },
    >("demo", __ENTRIES, __RESOURCES);
    const _: () = __TABLE.entry(0usize);
    #[cfg(feature = "other")]
    const _: () = __TABLE.entry(1usize);
    flechtwerk::glue::Pipeline {
        name: "demo",
        stages: &flechtwerk::glue::stages::<{ __ENTRIES.len() }>(__ENTRIES),
        resources: __RESOURCES,
    }
};
