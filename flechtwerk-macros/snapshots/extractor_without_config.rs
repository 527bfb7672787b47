async fn poll(cursor: &mut State<Cursor>) -> fw::Result<Next> {
    Ok(Next::Again)
}
#[doc(hidden)]
#[allow(non_camel_case_types, missing_docs, unreachable_pub, dead_code)]
struct poll {}
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
    impl fw::glue::Listable for poll {
        const LISTED: fw::glue::Listed = fw::glue::listed_extractor::<__Stage>();
    }
    const _: () = {
        type __Config = ();
        type poll = <(
            __Config,
            (),
            (State<Cursor>, ()),
            (),
            fw::Result<Next>,
        ) as fw::glue::CheckedBy<
            {
                let slots: [&[fw::glue::Part]; 1usize] = [
                    fw::glue::slot::<
                        State<Cursor>,
                    >(
                        &[
                            <<State<
                                Cursor,
                            > as fw::glue::SlotParam>::Role as fw::glue::FitsByMut>::PROOF,
                            <<State<
                                Cursor,
                            > as fw::glue::SlotParam>::Keeps as fw::glue::KeptAs<
                                Cursor,
                            >>::PROOF,
                        ],
                    ),
                ];
                let shared: [&[fw::glue::Share]; 0usize] = [];
                fw::glue::state_taken("Cursor", &slots);
                fw::glue::parameter(&slots, 0usize);
                fw::glue::no_timers(&slots, 0usize);
                <fw::Result<Next> as fw::glue::Polled>::PROOF
            },
        >>::It;
        impl fw::glue::Extractor for __Stage {
            const INFO: &'static fw::glue::StageInfo = &fw::glue::StageInfo {
                name: "poll",
                id: concat!(module_path!(), "::", "poll"),
                application_id: ::core::option::Option::None,
                inputs: &[],
                parts: fw::glue::AllParts::<Self::Slots, 6usize>::LIST,
                shared: &[],
                start: fw::glue::Start::Earliest,
                order: fw::glue::Order::Inputs,
                custom_key: false,
                headers: true,
                extractor: ::core::option::Option::Some(fw::glue::ExtractorInfo {
                    poll_interval: fw::glue::Duration::from_millis(500u64),
                    suspends: false,
                }),
                policy: fw::glue::Policy::CRASH,
                stub: false,
            };
            type Config = <poll as fw::glue::Checked>::Input;
            type Topics = <poll as fw::glue::Checked>::Topics;
            type Slots = <poll as fw::glue::Checked>::Slots;
            type Shared = <poll as fw::glue::Checked>::Shared;
            fn decode(_: &fw::glue::RawRecord) -> fw::glue::Tried<()> {
                fw::glue::Ok(())
            }
            fn call(
                _: &Self::Config,
                slots: &mut Self::Slots,
                shared: &Self::Shared,
            ) -> impl fw::glue::Future<
                Output = <poll as fw::glue::Checked>::Returns,
            > + fw::glue::Send {
                poll(&mut slots.0)
            }
        }
    };
};
