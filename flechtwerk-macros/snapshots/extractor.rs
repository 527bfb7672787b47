pub async fn poll(
    src: &Record<Sources>,
    cursor: &mut State<Cursor>,
    out: &mut Out<Items>,
) -> Result<Next> {
    Ok(Next::Idle)
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
        const LISTED: ::flechtwerk::glue::Listed = ::flechtwerk::glue::listed_extractor::<
            __Stage,
        >();
    }
    const _: () = {
        type __T0 = Sources;
        type __Config = <Record<
            Sources,
        > as ::flechtwerk::glue::CheckedBy<
            { ::flechtwerk::glue::input_type::<Record<Sources>>() },
        >>::It;
        type poll = <(
            __Config,
            (__T0, ()),
            (State<Cursor>, (Out<Items>, ())),
            (),
            Result<Next>,
        ) as ::flechtwerk::glue::CheckedBy<
            {
                let inputs: [::flechtwerk::glue::InputCheck; 1usize] = [
                    ::flechtwerk::glue::input::<
                        <__Config as ::flechtwerk::glue::Same>::T,
                        <__T0 as ::flechtwerk::glue::With<__Config>>::It,
                        ::flechtwerk::glue::AnyKey,
                    >(),
                ];
                let slots: [&[::flechtwerk::glue::Part]; 2usize] = [
                    ::flechtwerk::glue::slot::<
                        State<Cursor>,
                    >(
                        &[
                            <<State<
                                Cursor,
                            > as ::flechtwerk::glue::SlotParam>::Role as ::flechtwerk::glue::FitsByMut>::PROOF,
                            <<State<
                                Cursor,
                            > as ::flechtwerk::glue::SlotParam>::Keeps as ::flechtwerk::glue::KeptAs<
                                Cursor,
                            >>::PROOF,
                        ],
                    ),
                    ::flechtwerk::glue::slot::<
                        Out<Items>,
                    >(
                        &[
                            <<Out<
                                Items,
                            > as ::flechtwerk::glue::SlotParam>::Role as ::flechtwerk::glue::FitsByMut>::PROOF,
                            <<Out<
                                Items,
                            > as ::flechtwerk::glue::SlotParam>::Keeps as ::flechtwerk::glue::KeptAs<
                                Cursor,
                            >>::PROOF,
                        ],
                    ),
                ];
                let shared: [&[::flechtwerk::glue::Share]; 0usize] = [];
                ::flechtwerk::glue::inputs_complete("Record<Sources>", &inputs);
                ::flechtwerk::glue::state_taken("Cursor", &slots);
                ::flechtwerk::glue::parameter(&slots, 0usize);
                ::flechtwerk::glue::no_timers(&slots, 0usize);
                ::flechtwerk::glue::parameter(&slots, 1usize);
                ::flechtwerk::glue::no_timers(&slots, 1usize);
                <Result<Next> as ::flechtwerk::glue::Polled>::PROOF
            },
        >>::It;
        impl ::flechtwerk::glue::Extractor for __Stage {
            const INFO: &'static ::flechtwerk::glue::StageInfo = &::flechtwerk::glue::StageInfo {
                name: "poll",
                id: concat!(module_path!(), "::", "poll"),
                application_id: ::core::option::Option::None,
                inputs: &[
                    <<Self::Topics as ::flechtwerk::glue::Pair>::First as ::flechtwerk::glue::Topic>::INFO,
                ],
                parts: ::flechtwerk::glue::AllParts::<Self::Slots, 12usize>::LIST,
                shared: &[],
                start: ::flechtwerk::glue::Start::Earliest,
                order: ::flechtwerk::glue::Order::Inputs,
                custom_key: true,
                headers: true,
                extractor: ::core::option::Option::Some(::flechtwerk::glue::ExtractorInfo {
                    poll_interval: ::flechtwerk::glue::Duration::from_millis(30000u64),
                    suspends: true,
                }),
                policy: ::flechtwerk::glue::Policy::CRASH,
                stub: false,
            };
            type Config = <poll as ::flechtwerk::glue::Checked>::Input;
            type Topics = <poll as ::flechtwerk::glue::Checked>::Topics;
            type Slots = <poll as ::flechtwerk::glue::Checked>::Slots;
            type Shared = <poll as ::flechtwerk::glue::Checked>::Shared;
            fn key(
                raw: &::flechtwerk::glue::RawRecord,
            ) -> ::flechtwerk::glue::Tried<::flechtwerk::glue::Bytes> {
                let input = <Self as ::flechtwerk::glue::Extractor>::decode(raw)?;
                ::flechtwerk::glue::key::<
                    <Self as ::flechtwerk::glue::Extractor>::Config,
                    _,
                >(key_of, &input)
            }
            fn suspended(
                raw: &::flechtwerk::glue::RawRecord,
            ) -> ::flechtwerk::glue::Tried<bool> {
                let config = <Self as ::flechtwerk::glue::Extractor>::decode(raw)?;
                ::flechtwerk::glue::suspended::<
                    <Self as ::flechtwerk::glue::Extractor>::Config,
                    _,
                >(is_off, &config)
            }
            fn call(
                config: &Self::Config,
                slots: &mut Self::Slots,
                shared: &Self::Shared,
            ) -> impl ::flechtwerk::glue::Future<
                Output = <poll as ::flechtwerk::glue::Checked>::Returns,
            > + ::flechtwerk::glue::Send {
                poll(config, &mut slots.0, &mut slots.1.0)
            }
        }
    };
};
