//! The committed files, and what a plain recount of them says.

use std::collections::BTreeMap;

use anyhow::Context;
use flight_delays::{Airport, Figures, Flight, LATE_MINUTES};
use serde::Deserialize;

const AIRPORTS: &str = include_str!("../../../data/airports.csv");
const FLIGHTS: &str = include_str!("../../../data/flights.csv");

/// All that goes in: airports by code, and flights by the code of the airport that they left, in order.
pub(crate) struct Data {
    pub(crate) airports: Vec<(String, Airport)>,
    pub(crate) flights: Vec<(String, Flight)>,
}

#[derive(Deserialize)]
struct AirportLine {
    iata: String,
    name: String,
    city: String,
    latitude: f64,
    longitude: f64,
}

#[derive(Deserialize)]
struct FlightLine {
    departure: String,
    origin: String,
    destination: String,
    miles: u32,
    delay: i32,
}

impl Data {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let airports = csv::Reader::from_reader(AIRPORTS.as_bytes()).into_deserialize().map(|line| {
            let AirportLine { iata, name, city, latitude, longitude } = line?;
            Ok((iata, Airport { name, city, latitude, longitude }))
        });
        let flights = csv::Reader::from_reader(FLIGHTS.as_bytes()).into_deserialize().map(|line| {
            let FlightLine { departure, origin, destination, miles, delay } = line?;
            Ok((origin, Flight { departure, destination, miles, delay }))
        });
        Ok(Data {
            airports: airports.collect::<csv::Result<_>>().context("airports.csv can't be read")?,
            flights: flights.collect::<csv::Result<_>>().context("flights.csv can't be read")?,
        })
    }

    /// For each airport, its figures after each of its flights. Shares no code with the pipeline.
    pub(crate) fn recount(&self) -> BTreeMap<String, Vec<Figures>> {
        let mut delays: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        for (origin, flight) in &self.flights {
            delays.entry(origin).or_default().push(flight.delay);
        }
        let figures = |delays: &[i32]| Figures {
            flights: delays.len() as u64,
            late: delays.iter().filter(|delay| **delay > LATE_MINUTES).count() as u64,
            total_delay: delays.iter().map(|delay| i64::from(*delay)).sum(),
            total_squares: delays.iter().map(|delay| i64::from(*delay).pow(2)).sum(),
            max_delay: delays.iter().copied().max().unwrap_or_default(),
        };
        let each = |delays: Vec<i32>| (1..=delays.len()).map(|upto| figures(&delays[..upto])).collect();
        delays.into_iter().map(|(origin, delays)| (origin.to_owned(), each(delays))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_whole() {
        let data = Data::read().unwrap();
        assert_eq!((data.airports.len(), data.flights.len()), (224, 20_000));
        let known: Vec<_> = data.airports.iter().map(|(code, _)| code).collect();
        assert!(
            data.flights
                .iter()
                .all(|(origin, flight)| known.contains(&origin) && known.contains(&&flight.destination))
        );
        assert!(data.flights.is_sorted_by_key(|(_, flight)| &flight.departure));
    }

    #[test]
    fn the_recount_is_that_of_the_file() {
        let recount = Data::read().unwrap().recount();
        assert_eq!(recount.len(), 220);
        assert_eq!(recount.values().map(Vec::len).sum::<usize>(), 20_000);
        assert_eq!(
            recount["DTW"][0],
            Figures { flights: 1, late: 1, total_delay: 66, total_squares: 4356, max_delay: 66 }
        );
    }
}
