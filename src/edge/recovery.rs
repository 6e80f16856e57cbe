//! What the edge puts right after a refusal: its clock, its credentials, its user token.

use crate::edge::clock_skew::ClockSkew;
use crate::edge::exchange::{Edge, Identity};
use crate::edge::kept::Kept;
use crate::edge::order::Order;
use crate::policy::classify::Recovery;
use std::time::Duration;

impl Edge {
    /// Puts right what the gateway refused; an error says why sending again is pointless.
    pub(super) async fn put_right(
        &self,
        recovery: Recovery,
        order: &Order,
        (refused, seen): (&Identity, Option<&Kept>),
        within: Duration,
    ) -> Result<(), &'static str> {
        match recovery {
            Recovery::Clock => {
                let gap = seen.and_then(Kept::raw_gap);
                if gap.unwrap_or_default().unsigned_abs() > ClockSkew::MOST_SECONDS {
                    return Err("the clocks differ by more than a day, which is not put right");
                }
                let _ = gap.map(|gap| self.skew.note(gap, true));
                Ok(())
            }
            // Sent again whether or not others can be had: the answer may have been about the way, not the key.
            Recovery::Signature => {
                let _ = self.credentials.renew(&refused.credentials, within).await;
                Ok(())
            }
            Recovery::Credentials => {
                let refreshed = self.credentials.refresh(&refused.credentials, within).await;
                let changed = refreshed.is_ok_and(|refreshed| refreshed.changed);
                changed.then_some(()).ok_or("no other credentials than the refused ones can be had")
            }
            Recovery::Identity => {
                let began = self.ambient.now();
                let another = self.another_user_token(order, refused, within).await;
                let left = within.saturating_sub(self.ambient.now().since(&began));
                // Both, even if the token did change: either may be what was refused.
                let changed = another | self.other_credentials(refused, left).await;
                changed.then_some(()).ok_or("neither other credentials nor another user token can be had")
            }
        }
    }

    async fn another_user_token(&self, order: &Order, refused: &Identity, within: Duration) -> bool {
        let source = self.user_tokens.as_ref().filter(|_| order.user_token.is_none());
        let (Some(source), Some(old)) = (source, &refused.user_token) else { return false };
        let given = tokio::time::timeout(within, source.user_token(Some(old))).await;
        given.is_ok_and(|given| given.is_ok_and(|new| new != *old))
    }

    /// Whether the provider has other credentials than those of a call that got a 401; not asked about young ones.
    async fn other_credentials(&self, refused: &Identity, within: Duration) -> bool {
        if self.credentials.is_young(&refused.credentials) {
            return false;
        }
        self.credentials.renew(&refused.credentials, within).await.is_ok_and(|renewed| renewed.changed)
    }
}
