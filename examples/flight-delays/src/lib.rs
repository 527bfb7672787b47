//! Running statistics of flights for each airport of departure, together with the airport's name.
//!
//! Two topics meet in one stage: `airports` says what is known of an airport, `flights` has one record per flight
//! under the airport that it left. Both are keyed by the airport's code and have as many partitions, so that one task
//! sees all of an airport, and its state holds both.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// What is known of an airport.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Airport {
    /// Its full name.
    pub name: String,
    /// The city it belongs to.
    pub city: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// A flight that has landed.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Flight {
    /// Date and time of the departure, local.
    pub departure: String,
    /// Code of the airport of arrival.
    pub destination: String,
    /// Miles flown.
    pub miles: u32,
    /// Minutes late at the arrival; less than zero if it was early.
    pub delay: i32,
}

/// Figures of all flights that left an airport. All are whole numbers, so that they come out the same wherever they
/// are computed; mean and deviation follow from them.
#[derive(Serialize, Deserialize, Default, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Number of flights.
    pub flights: u64,
    /// Those of them that were more than [`LATE_MINUTES`] late.
    pub late: u64,
    /// The sum of all delays, early arrivals counting against late ones.
    pub total_delay: i64,
    /// The sum of their squares.
    pub total_squares: i64,
    /// The largest.
    pub max_delay: i32,
}

/// A flight is called late from here on: the official measure.
pub const LATE_MINUTES: i32 = 15;

impl Figures {
    /// Takes one more flight in.
    pub fn add(&mut self, delay: i32) {
        self.max_delay = if self.flights == 0 { delay } else { self.max_delay.max(delay) };
        self.flights += 1;
        self.late += u64::from(delay > LATE_MINUTES);
        self.total_delay += i64::from(delay);
        self.total_squares += i64::from(delay) * i64::from(delay);
    }

    /// The mean delay in minutes.
    pub fn mean(&self) -> f64 {
        self.total_delay as f64 / self.flights.max(1) as f64
    }

    /// The standard deviation of the delays in minutes.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.total_squares as f64 / self.flights.max(1) as f64 - mean * mean).max(0.0).sqrt()
    }
}

/// The state: all that is remembered of an airport.
#[derive(State, Serialize, Deserialize, Default, Clone, Debug, PartialEq)]
pub struct Departures {
    airport: Option<Airport>,
    figures: Figures,
}

/// The result: an airport's figures up to a flight.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Delays {
    /// The airport's name, if it is known yet.
    pub name: Option<String>,
    /// Its city.
    pub city: Option<String>,
    /// Its figures.
    pub figures: Figures,
}

/// Airports by their code. A null value forgets what is known of one, not its figures.
#[topic("airports", key = Utf8, value = Nullable<Json<Airport>>)]
pub struct Airports;

/// Flights by the code of the airport that they left.
#[topic("flights", key = Utf8, value = Json<Flight>)]
pub struct Flights;

/// One record per flight, by the same code: the figures with this flight in them.
#[topic("delays", key = Utf8, value = Json<Delays>)]
pub struct AirportDelays;

/// What may happen at an airport.
#[derive(Input)]
pub enum Event {
    /// Something was learned about it.
    Airport(Record<Airports>),
    /// A flight left it.
    Flight(Record<Flights>),
}

/// Keeps the figures of one airport.
#[transformer(inputs = [Airports, Flights], state = Departures)]
pub async fn delays(
    event: Event,
    state: &mut State<Departures>,
    out: &mut Out<AirportDelays>,
) -> flechtwerk::Result {
    let departures = state.get_or_insert_default();
    match event {
        Event::Airport(airport) => departures.airport = airport.value,
        Event::Flight(flight) => {
            departures.figures.add(flight.value.delay);
            let airport = departures.airport.as_ref();
            let delays = Delays {
                name: airport.map(|airport| airport.name.clone()),
                city: airport.map(|airport| airport.city.clone()),
                figures: departures.figures,
            };
            out.send(flight.key, delays);
        }
    }
    Ok(())
}

flechtwerk::pipeline!(
    /// The whole pipeline.
    pub FLIGHT_DELAYS = "flight-delays": [delays]
);

#[cfg(test)]
mod tests {
    use flechtwerk::testing::Driver;

    use super::*;

    fn flight(delay: i32) -> Flight {
        Flight { departure: "2001-01-01 06:00".into(), destination: "HNL".into(), miles: 2399, delay }
    }

    fn airport() -> Airport {
        Airport {
            name: "San Francisco International".into(),
            city: "San Francisco".into(),
            latitude: 37.6,
            longitude: -122.4,
        }
    }

    #[test]
    fn figures_are_those_of_all_flights() {
        let mut figures = Figures::default();
        for delay in [-5, 15, 16, 2] {
            figures.add(delay);
        }
        assert_eq!(
            figures,
            Figures { flights: 4, late: 1, total_delay: 28, total_squares: 510, max_delay: 16 }
        );
        assert_eq!(figures.mean(), 7.0);
        assert!((figures.deviation() - 8.860).abs() < 0.001);
    }

    #[test]
    fn the_largest_of_early_arrivals_is_early() {
        let mut figures = Figures::default();
        figures.add(-20);
        figures.add(-10);
        assert_eq!(figures.max_delay, -10);
    }

    /// A stage is a function: a test calls it, once per record.
    #[tokio::test]
    async fn a_flight_is_reported_with_its_airport() -> flechtwerk::Result {
        let (mut state, mut out) = (State::default(), Out::default());
        let known = Record::<Airports>::new("SFO".into(), Some(airport()));
        delays(Event::Airport(known), &mut state, &mut out).await?;
        assert!(out.sent().is_empty(), "an airport alone is no result");
        delays(Event::Flight(Record::new("SFO".into(), flight(30))), &mut state, &mut out).await?;
        let [(key, sent)] = &out.sent()[..] else { panic!("one flight, one result") };
        assert_eq!((key.as_str(), sent.city.as_deref()), ("SFO", Some("San Francisco")));
        assert_eq!((sent.figures.flights, sent.figures.late), (1, 1));
        Ok(())
    }

    #[tokio::test]
    async fn forgetting_an_airport_keeps_its_figures() -> flechtwerk::Result {
        let mut figures = Figures::default();
        figures.add(3);
        let mut state = State::new(Departures { airport: Some(airport()), figures });
        delays(Event::Airport(Record::new("SFO".into(), None)), &mut state, &mut Out::default()).await?;
        assert_eq!(*state, Some(Departures { airport: None, figures }));
        Ok(())
    }

    /// The pipeline as a whole, in memory: both inputs meet in the airport's partition.
    #[test]
    fn each_airport_has_figures_of_its_own() -> Result<(), Box<dyn std::error::Error>> {
        let mut driver = Driver::new(&FLIGHT_DELAYS).partitions(4);
        driver.send::<Airports>("SFO".into(), Some(airport()));
        for (origin, delay) in [("SFO", 20), ("JFK", 5), ("SFO", -3), ("SFO", 100)] {
            driver.send::<Flights>(origin.into(), flight(delay));
        }
        driver.run_blocking()?;
        let results = driver.records::<AirportDelays>();
        assert_eq!(results.len(), 4, "one result per flight");
        let of = |code: &str| -> Vec<&Delays> {
            results.iter().filter(|record| record.key == code).map(|record| &record.value).collect()
        };
        assert_eq!(of("JFK")[0].name, None);
        let last = of("SFO")[2];
        assert_eq!(
            last.figures,
            Figures { flights: 3, late: 2, total_delay: 117, total_squares: 10_409, max_delay: 100 }
        );
        assert_eq!(last.name.as_deref(), Some("San Francisco International"));
        assert_eq!(driver.states::<Departures>("delays").len(), 2);
        Ok(())
    }
}
