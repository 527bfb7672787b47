const _: () = {
    type __Given1 = u64;
    type __V1 = <__Given1 as ::flechtwerk::glue::CheckedBy<
        { ::flechtwerk::glue::old_state::<<__Given1 as ::flechtwerk::glue::Same>::T>() },
    >>::It;
    const _: () = ::flechtwerk::glue::old_version::<__V1>(1u32);
    type __Given2 = CountV2;
    type __V2 = <__Given2 as ::flechtwerk::glue::CheckedBy<
        { ::flechtwerk::glue::old_state::<<__Given2 as ::flechtwerk::glue::Same>::T>() },
    >>::It;
    const _: () = ::flechtwerk::glue::old_version::<__V2>(2u32);
    impl ::flechtwerk::glue::StateValue for Count {
        const VERSION: u32 = 3u32;
        const NAME: &'static str = "Count";
        const OLDEST: u32 = 1u32;
        fn upgrade(version: u32, bytes: &[u8]) -> ::flechtwerk::glue::Tried<Self> {
            let stored = (version, bytes);
            let state = ::core::option::Option::None;
            let state = ::flechtwerk::glue::read::<__V1>(1u32, stored, state)?;
            let state = ::flechtwerk::glue::step::<
                __V1,
                __V2,
                _,
            >(old::from_1, stored, state)?;
            let state = ::flechtwerk::glue::read::<__V2>(2u32, stored, state)?;
            let state = ::flechtwerk::glue::step::<
                __V2,
                Self,
                _,
            >(from_2, stored, state)?;
            ::flechtwerk::glue::upgraded(stored, state)
        }
    }
};
