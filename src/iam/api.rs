//! One deployed API: where it is and what its ARNs begin with.

use crate::iam::error::IamError;
use std::fmt;

/// A stage of an API in its Region and account, checked.
///
/// ```
/// use eastwest::iam::{Api, Partition};
///
/// let api = Api::new("cn-north-1", "123456789012", "a1b2c3d4e5", "prod")?;
/// assert_eq!(api.partition(), Partition::AwsCn);
/// assert_eq!(api.to_string(), "arn:aws-cn:execute-api:cn-north-1:123456789012:a1b2c3d4e5/prod");
/// # Ok::<(), eastwest::iam::IamError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Api {
    partition: Partition,
    region: String,
    account: String,
    id: String,
    stage: String,
}

impl Api {
    /// Names a stage of an API. The partition follows from the Region, so the two cannot disagree.
    ///
    /// Wildcards are refused in all four: a grant for every stage is not the least privilege.
    ///
    /// # Errors
    /// [`IamError::Invalid`] with the field: `region` unless it is a Region code of a known [`Partition`]; `account`
    /// unless it is 12 digits; `api_id` unless it is 1 to 64 lower-case letters and digits; `stage` unless it is
    /// `$default` (an HTTP API's) or 1 to 128 letters, digits, hyphens and underscores (*CreateStage*).
    pub fn new(region: &str, account: &str, id: &str, stage: &str) -> Result<Api, IamError> {
        let partition = Partition::of_region(region)?;
        if !is_account(account) {
            return Err(IamError::invalid("account", account, "an account id is 12 digits"));
        }
        let of_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !(1..=64).contains(&id.len()) || !id.bytes().all(of_id) {
            return Err(IamError::invalid("api_id", id, "an API id is of lower-case letters and digits"));
        }
        let of_stage = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let named = (1..=128).contains(&stage.len()) && stage.bytes().all(of_stage);
        if stage != DEFAULT_STAGE && !named {
            let reason = "a stage is `$default`, or 1 to 128 letters, digits, hyphens and underscores";
            return Err(IamError::invalid("stage", stage, reason));
        }
        let [region, account, id, stage] = [region, account, id, stage].map(str::to_owned);
        Ok(Api { partition, region, account, id, stage })
    }

    /// The partition of the Region.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// Whether both are stages of one API, so that one resource policy is for both.
    pub(super) fn is_stage_beside(&self, other: &Api) -> bool {
        (&self.region, &self.account, &self.id) == (&other.region, &other.account, &other.id)
    }

    /// Whether this is surely an HTTP API: only those have a stage `$default`. A named stage says nothing.
    #[must_use]
    pub fn is_http_api(&self) -> bool {
        self.stage == DEFAULT_STAGE
    }
}

/// The ARN of the stage, without method and path.
impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Api { partition, region, account, id, stage } = self;
        // `$default` stands as it is: only `${` begins a policy variable.
        write!(f, "arn:{partition}:execute-api:{region}:{account}:{id}/{stage}")
    }
}

/// A group of Regions, the second word of every ARN in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Partition {
    /// `aws`: the commercial Regions.
    Aws,
    /// `aws-cn`: the Regions in China.
    AwsCn,
    /// `aws-us-gov`: AWS GovCloud (US).
    AwsUsGov,
}

impl Partition {
    /// The partition of a Region.
    ///
    /// # Errors
    /// [`IamError::Invalid`] with the field `region` unless it has the form of a Region code (`eu-central-1`), and for
    /// a Region of another partition (`us-iso-*`, `us-isob-*`, `eu-isoe-*`, `us-isof-*`, `eusc-*`).
    pub fn of_region(region: &str) -> Result<Partition, IamError> {
        let words: Vec<&str> = region.split('-').collect();
        let letters = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let [area, middle @ .., number] = words.as_slice() else {
            return Err(IamError::invalid("region", region, NO_REGION));
        };
        let numbered = (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        let placed = (1..=2).contains(&middle.len()) && middle.iter().all(letters);
        if !(letters(area) && placed && numbered) {
            return Err(IamError::invalid("region", region, NO_REGION));
        }
        match (*area, middle.first().copied().unwrap_or_default()) {
            ("cn", _) => Ok(Partition::AwsCn),
            ("us", "gov") => Ok(Partition::AwsUsGov),
            (area, word) if area.len() != 2 || word.starts_with("iso") => {
                let reason = "a Region of the partitions aws, aws-cn and aws-us-gov is needed";
                Err(IamError::invalid("region", region, reason))
            }
            _ => Ok(Partition::Aws),
        }
    }

    /// The partition as it stands in an ARN.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Partition::Aws => "aws",
            Partition::AwsCn => "aws-cn",
            Partition::AwsUsGov => "aws-us-gov",
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a text is an account id.
pub(super) fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

const DEFAULT_STAGE: &str = "$default";
const NO_REGION: &str = "a Region code is like `eu-central-1`";

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_follows_from_the_region() {
        for (region, partition) in [
            ("ap-southeast-2", "aws"),
            ("eu-central-1", "aws"),
            ("il-central-1", "aws"),
            ("us-east-1", "aws"),
            ("cn-north-1", "aws-cn"),
            ("cn-northwest-1", "aws-cn"),
            ("us-gov-east-1", "aws-us-gov"),
            ("us-gov-west-1", "aws-us-gov"),
        ] {
            assert_eq!(Partition::of_region(region).unwrap().as_str(), partition, "{region}");
        }
    }

    #[test]
    fn a_region_of_a_partition_that_is_not_known_here_is_refused_and_not_guessed() {
        for region in
            ["us-iso-east-1", "us-isob-east-1", "us-isof-south-1", "eu-isoe-west-1", "eusc-de-east-1"]
        {
            assert_eq!(Partition::of_region(region).unwrap_err().field(), Some("region"), "{region}");
        }
    }

    #[test]
    fn every_field_that_is_none_is_refused_by_name() {
        let good = ["eu-central-1", "123456789012", "a1b2c3d4e5", "prod"];
        let long = "s".repeat(129);
        let cases: [(usize, &str, &[&str]); 4] = [
            (
                0,
                "region",
                &["", "*", "eu-central", "eu-1", "EU-central-1", "eu-central-123", "eu--1", "eu-central-1 "],
            ),
            (1, "account", &["", "*", "12345678901", "1234567890123", "12345678901x", "1234-5678-9012"]),
            (2, "api_id", &["", "*", "A1B2", "a1/b2", "${Token[1]}", "a b"]),
            (3, "stage", &["", "*", "prod/eu", "$Default", "pro.d", "prod ", &long]),
        ];
        assert!(Api::new(good[0], good[1], good[2], good[3]).is_ok());
        for (place, field, values) in cases {
            for value in values {
                let mut fields = good;
                fields[place] = value;
                let [region, account, id, stage] = fields;
                match Api::new(region, account, id, stage).unwrap_err() {
                    IamError::Invalid { field: named, value: told, .. } => {
                        assert_eq!((named, told.as_str()), (field, *value));
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }

    #[test]
    fn the_stage_of_an_http_api_may_be_the_default_one() {
        let api = Api::new("us-east-1", "123456789012", "a1b2c3d4e5", "$default").unwrap();
        assert!(api.is_http_api());
        assert_eq!(api.to_string(), "arn:aws:execute-api:us-east-1:123456789012:a1b2c3d4e5/$default");
    }
}
