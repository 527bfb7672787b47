const _: () = {
    const fn __checked0() -> usize {
        ::flechtwerk::glue::variant::<Record<Profiles>>()
    }
    const __PROOF0: usize = __checked0();
    type __R0 = <Record<Profiles> as ::flechtwerk::glue::CheckedBy<__PROOF0>>::It;
    type __G0 = Record<Profiles>;
    impl ::flechtwerk::glue::Accepts<__G0> for Trip {
        fn accept(
            raw: &::flechtwerk::glue::RawRecord,
        ) -> ::flechtwerk::glue::Tried<Self> {
            <__R0 as ::flechtwerk::glue::IsRecord>::accept(raw).map(Trip::Profile)
        }
    }
    #[cfg(feature = "updates")]
    const fn __checked1() -> usize {
        ::flechtwerk::glue::variant::<Record<Updates>>()
    }
    #[cfg(feature = "updates")]
    const __PROOF1: usize = __checked1();
    #[cfg(feature = "updates")]
    type __R1 = <Record<Updates> as ::flechtwerk::glue::CheckedBy<__PROOF1>>::It;
    #[cfg(feature = "updates")]
    type __G1 = Record<Updates>;
    #[cfg(feature = "updates")]
    impl ::flechtwerk::glue::Accepts<__G1> for Trip {
        fn accept(
            raw: &::flechtwerk::glue::RawRecord,
        ) -> ::flechtwerk::glue::Tried<Self> {
            <__R1 as ::flechtwerk::glue::IsRecord>::accept(raw).map(Trip::Update)
        }
    }
    impl ::flechtwerk::glue::Input for Trip {
        const TOPICS: &'static [&'static ::flechtwerk::glue::TopicInfo] = &[
            <__R0 as ::flechtwerk::glue::IsRecord>::INFO,
            #[cfg(feature = "updates")]
            <__R1 as ::flechtwerk::glue::IsRecord>::INFO,
        ];
        const PROOF: usize = ::flechtwerk::glue::proofs(
            &[__PROOF0, #[cfg(feature = "updates")] __PROOF1],
        );
    }
};
