//! A client's clock whose waits take no time, but for what the callee does in one of them.

use crate::callee::Callee;
use eastwest::policy::moment::{Draw, Moment};
use eastwest::testing::{Ambient, ManualClock};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Lets the callee finish an order in the wait of this number, from 1.
pub struct Meanwhile {
    pub clock: ManualClock,
    pub callee: Callee,
    pub order: String,
    pub wait: usize,
}

impl Ambient for Meanwhile {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn draw(&self) -> Draw {
        self.clock.draw()
    }

    fn id_bits(&self) -> u128 {
        self.clock.id_bits()
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        let slept = self.clock.sleep(wait);
        let number = self.clock.waits().len() + 1;
        let finishes = (number == self.wait).then(|| (self.callee, self.order.clone()));
        Box::pin(async move {
            if let Some((callee, order)) = finishes {
                callee.finish(&order).await;
            }
            slept.await;
        })
    }
}
