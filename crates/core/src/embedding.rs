//! A unit-length vector whose constructor refuses what an index must never hold.

use thiserror::Error;

/// A finite, unit-length `f32` vector. There is no way to hold one with NaN, infinity or zero norm (F20).
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding(Vec<f32>);

/// Why a vector is not an embedding.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EmbeddingError {
    /// The vector has no components.
    #[error("the embedding has no components")]
    Empty,
    /// A component is NaN or infinite.
    #[error("component {index} of the embedding is not a finite number; the model or its weights are damaged")]
    NotFinite {
        /// Position of the first such component.
        index: usize,
    },
    /// The Euclidean norm is zero (or too small to divide by).
    #[error("the embedding has zero length; the text has no content the model can place")]
    ZeroNorm,
}

impl Embedding {
    /// Checks `components` and scales them to unit length.
    ///
    /// # Errors
    /// [`EmbeddingError`] if the vector is empty, holds a non-finite component, or has no length.
    pub fn new(mut components: Vec<f32>) -> Result<Self, EmbeddingError> {
        if components.is_empty() {
            return Err(EmbeddingError::Empty);
        }
        if let Some(index) = components.iter().position(|x| !x.is_finite()) {
            return Err(EmbeddingError::NotFinite { index });
        }
        let norm = components.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        if norm < f64::from(f32::MIN_POSITIVE) {
            return Err(EmbeddingError::ZeroNorm);
        }
        // Vectors that are unit length already keep their bits: a stored vector reads back as it was written.
        if (norm - 1.0).abs() > 1e-6 {
            for x in &mut components {
                *x = (f64::from(*x) / norm) as f32;
            }
        }
        Ok(Self(components))
    }

    /// The components, `dim` of them.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// Number of components.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.0.len()
    }

    /// This vector and the mean of `others`, weighted `1 − share` to `share` and scaled to unit length; itself if there are
    /// none.
    ///
    /// # Errors
    /// [`EmbeddingError::ZeroNorm`] if they cancel each other out.
    ///
    /// # Panics
    /// If the dimensions differ, which means that two models were mixed.
    pub fn blended(&self, others: &[Self], share: f32) -> Result<Self, EmbeddingError> {
        if others.is_empty() {
            return Ok(self.clone());
        }
        let weight = share / others.len() as f32;
        let mut sum: Vec<f32> = self.0.iter().map(|x| (1.0 - share) * x).collect();
        for other in others {
            assert_eq!(self.dim(), other.dim(), "embeddings of different dimensions were blended");
            for (sum, x) in sum.iter_mut().zip(&other.0) {
                *sum += weight * x;
            }
        }
        Self::new(sum)
    }

    /// Cosine similarity in −1 … 1; both vectors have unit length, so it is their inner product.
    ///
    /// # Panics
    /// If the dimensions differ, which means that two models were mixed.
    #[must_use]
    pub fn cosine(&self, other: &Self) -> f32 {
        assert_eq!(self.dim(), other.dim(), "embeddings of different dimensions were compared");
        self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m21_a_blend_lies_between_and_has_unit_length() {
        let query = Embedding::new(vec![1.0, 0.0]).expect("a vector");
        let others = [[0.0, 1.0], [0.0, 2.0]].map(|x| Embedding::new(x.to_vec()).expect("a vector"));
        let blend = query.blended(&others, 0.3).expect("a vector");
        let length = (0.7f32 * 0.7 + 0.3 * 0.3).sqrt();
        assert!((blend.as_slice()[0] - 0.7 / length).abs() < 1e-6 && (blend.as_slice()[1] - 0.3 / length).abs() < 1e-6);
        assert_eq!(query.blended(&[], 0.3), Ok(query.clone()));
        let opposite = Embedding::new(vec![-1.0, 0.0]).expect("a vector");
        assert_eq!(query.blended(&[opposite], 0.5), Err(EmbeddingError::ZeroNorm));
    }

    #[test]
    fn f20_nan_infinity_and_zero_are_refused() {
        assert_eq!(Embedding::new(vec![]), Err(EmbeddingError::Empty));
        assert_eq!(Embedding::new(vec![0.0, f32::NAN]), Err(EmbeddingError::NotFinite { index: 1 }));
        assert_eq!(Embedding::new(vec![f32::INFINITY]), Err(EmbeddingError::NotFinite { index: 0 }));
        assert_eq!(Embedding::new(vec![0.0; 8]), Err(EmbeddingError::ZeroNorm));
    }

    #[test]
    fn a_vector_is_scaled_once_and_then_keeps_its_bits() {
        let once = Embedding::new(vec![3.0, 4.0]).expect("finite");
        assert_eq!(once.as_slice(), &[0.6, 0.8]);
        let twice = Embedding::new(once.as_slice().to_vec()).expect("finite");
        assert_eq!(once, twice);
        assert!((once.cosine(&twice) - 1.0).abs() < 1e-6);
    }
}
