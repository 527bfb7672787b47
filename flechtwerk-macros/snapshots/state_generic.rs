const _: () = {
    impl<T> ::flechtwerk::glue::StateValue for Last<T>
    where
        T: Clone,
        Self: ::flechtwerk::glue::Storable + ::core::marker::Send + 'static,
    {
        const NAME: &'static str = "Last";
    }
};
