//! Beam search.
use lacuna::Device;

use crate::model::Model;
use crate::{plain, search};

#[test]
fn finds_what_plain_rust_finds() {
    for (seed, [sentences, beams, vocabulary, length]) in
        [(1, [3, 4, 60, 8]), (2, [1, 1, 40, 6]), (3, [2, 12, 9, 7]), (4, [1, 5, 1500, 3])]
    {
        let model = Model::draw(vocabulary, sentences, seed);
        let found = search::search(&Device::simulator(), &model, sentences, beams, length).unwrap();
        let expected = plain::search(&model, sentences, beams, length);
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert_eq!(found.tokens, expected.tokens, "seed {seed}");
            assert!((found.score - expected.score).abs() < 1e-4, "{found:?}, {expected:?}");
        }
        assert_eq!(found.concat().len(), sentences * beams);
    }
}

#[test]
fn sentences_come_to_an_end() {
    let model = Model::draw(30, 2, 7);
    let found = search::search(&Device::simulator(), &model, 2, 3, 30).unwrap();
    for hypothesis in found.iter().flatten() {
        let ends = hypothesis.tokens.iter().filter(|&&token| token == crate::model::END).count();
        assert_eq!((ends, hypothesis.tokens.last()), (1, Some(&crate::model::END)), "{hypothesis:?}");
    }
}
