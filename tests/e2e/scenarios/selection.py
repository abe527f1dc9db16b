"""The choice of cards: by the pod's conditions, by affinity and anti-affinity to other pods, by
policy.
"""

from __future__ import annotations

from bench import check
from ground import NO_CARD, Ground, card, on_all_grounds
from share_truth import AFFINITY, ANTI_AFFINITY, CORDONED, COUNT_LABEL, MODEL, UUID

POLICY = "cardpack.io/policy"
CARD_POLICY = "cardpack.io/card-policy"
NODE_LABEL = "ack.node.gpu.placement"
ISOLATION = "cardpack.io/isolation"
REQUIRE_ISOLATION = "cardpack.io/require-isolation"

MODELS = [
    card(0, 16, model="Tesla-T4", uuid="GPU-t0"),
    card(1, 16, model="NVIDIA-A100-SXM4-40GB", uuid="GPU-a1"),
    card(2, 16, model="NVIDIA-A100-PCIE-40GB", uuid="GPU-a2"),
    card(3, 16, model="Tesla-V100", uuid="GPU-v3"),
]


@on_all_grounds
def card_models(ground: Ground) -> None:
    """Lists, exclusions, asterisks; case is ignored."""
    ground.node("n1", MODELS)
    ground.cardpack()

    def cards(name: str, models: str) -> list[int]:
        return ground.placed(name, 6, notes={MODEL: models})

    check(cards("t4", "tesla-t4") == [0], "t4")
    check(cards("a100", "*a100*") == [1], "a100")
    check(cards("list", "Tesla-V100,Tesla-P40") == [3], "list")
    check(cards("not", "*A100*,!*SXM4*") == [2], "not")
    check(cards("never", "!Tesla-*, !*PCIE*") == [1], "never")
    ground.turned_away("unknown", 1, MODEL, notes={MODEL: "H100"})
    ground.turned_away("full", 6, NO_CARD, notes={MODEL: "*SXM4*"})
    two = ground.placed("two", 8, labels={COUNT_LABEL: "2"}, notes={MODEL: "Tesla-*"})
    check(two == [0, 3], two)


@on_all_grounds
def model_of_the_node(ground: Ground) -> None:
    """Without a model in the card table the node's label decides."""
    ground.node("n1", 1, 8, labels={"nvidia.com/gpu.product": "Tesla-T4"})
    ground.node("n2", 1, 8, labels={"nvidia.com/gpu.product": "Tesla-V100"})
    ground.cardpack()
    ground.placed("v100", 1, notes={MODEL: "*V100"})
    check(ground.get("v100")["spec"]["nodeName"] == "n2", "v100 is not on n2")
    ground.placed("not", 1, notes={MODEL: "!*v100"})
    check(ground.get("not")["spec"]["nodeName"] == "n1", "not is not on n1")


@on_all_grounds
def card_uuids(ground: Ground) -> None:
    """This card, or any card but that one."""
    ground.node("n1", MODELS)
    ground.cardpack()
    check(ground.placed("this", 4, notes={UUID: "GPU-v3"}) == [3], "this")
    check(ground.placed("others", 4, notes={UUID: "!GPU-v3,!GPU-t0"}) == [1], "others")
    check(ground.placed("either", 12, notes={UUID: "GPU-t0, GPU-v3"}) == [3], "the tightest")
    ground.turned_away("no-such", 1, UUID, notes={UUID: "GPU-x9"})


@on_all_grounds
def isolation(ground: Ground) -> None:
    """Only nodes that enforce shares, for the pods that require it; and the label can go."""
    ground.node("n1", 1, 16)
    ground.node("n2", 1, 8, labels={ISOLATION: "mps"})
    ground.node("n3", 1, 16, labels={ISOLATION: "none"})
    ground.cardpack()
    requires = {REQUIRE_ISOLATION: "true"}
    ground.placed("first", 4, notes=requires)
    check(ground.get("first")["spec"]["nodeName"] == "n2", "first is not on n2")
    ground.turned_away("large", 12, REQUIRE_ISOLATION, notes=requires)
    ground.turned_away("odd", 1, REQUIRE_ISOLATION, notes={REQUIRE_ISOLATION: "yes"})
    ground.placed("any", 12, notes={REQUIRE_ISOLATION: "false"})
    ground.placed("second", 4, notes=requires)
    check(ground.get("second")["spec"]["nodeName"] == "n2", "second is not on n2")


@on_all_grounds
def same_card(ground: Ground) -> None:
    """A namespace's group shares one card, even if another card would be a tighter fit."""
    group = {AFFINITY: "team"}
    ground.node("n1", 2, 16)
    ground.cardpack()
    check(ground.placed("tight", 10) == [0], "tight")
    check(ground.placed("first", 8, notes=group) == [1], "first")
    check(ground.placed("second", 4, notes=group) == [1], "second, though card 0 has 6")
    ground.turned_away("third", 5, NO_CARD, notes=group)
    ground.annotate_node("n1", annotations={CORDONED: "1"})
    ground.comes_to_refuse("n1", 1, AFFINITY, notes=group)
    ground.turned_away("fourth", 1, AFFINITY, notes=group)
    ground.annotate_node("n1", annotations={CORDONED: None})
    check(ground.placed("other", 5, notes={AFFINITY: "others"}) == [0], "another group")
    ground.delete("first", "second")
    check(ground.placed("again", 1, notes=group) == [0], "no pod holds one: the tightest card")


@on_all_grounds
def other_card(ground: Ground) -> None:
    """Two pods of a group are never on one card."""
    group = {ANTI_AFFINITY: "replicas"}
    ground.node("n1", 2, 16)
    ground.cardpack()
    check(ground.placed("first", 1, notes=group) == [0], "first")
    check(ground.placed("second", 1, notes=group) == [1], "second")
    ground.turned_away("third", 1, ANTI_AFFINITY, notes=group)
    check(ground.placed("other", 1, notes={ANTI_AFFINITY: "others"}) == [0], "another group")
    check(ground.placed("none", 1) == [0], "no group")


@on_all_grounds
def policy_of_cards(ground: Ground) -> None:
    """The pod's policy comes before the node's, and the node's before the tightest card."""
    ground.node("n1", 3, 16, labels={NODE_LABEL: "spread"})
    ground.cardpack()
    check([ground.placed(f"s{i}", i + 1)[0] for i in range(3)] == [0, 1, 2], "spread by the node")
    check(ground.placed("pack", 5, notes={CARD_POLICY: "binpack"}) == [2], "binpack by the pod")
    check(ground.placed("both", 6, notes={POLICY: "binpack"}) == [2], "binpack of all")
    check(ground.placed("s3", 7) == [0], "spread by the node again")  # 8, 14 and 2 are left
    wide = {POLICY: "binpack", CARD_POLICY: "spread"}  # the card policy comes first
    check(ground.placed("narrow", 4, notes=wide) == [1], "spread by the pod")  # 8, 10 and 2
    ground.turned_away("large", 11, NO_CARD)


@on_all_grounds
def policy_without_a_label(ground: Ground) -> None:
    """
    Binpack by default. Pods of one size are spread only after the device plugin has acknowledged the
    earlier ones: until then it might swap them, which is harmless only on one card.
    """
    ground.node("n1", 3, 16)
    ground.cardpack()
    check([ground.placed(f"b{i}", i + 1)[0] for i in range(3)] == [0, 0, 0], "binpack")
    spread = {POLICY: "spread"}
    for i, card_of in enumerate([1, 2, 0]):
        check(ground.placed(f"s{i}", 7, notes=spread) == [card_of], f"s{i}")
        ground.running(f"s{i}")
    check([ground.placed(f"t{i}", 4, notes=spread)[0] for i in range(2)] == [1, 1], "alike")


@on_all_grounds
def groups_in_a_burst(ground: Ground) -> None:
    """Many pods at once: after filter another pod of the group may have taken the offered card."""
    ground.node("n1", 8, 16)
    ground.cardpack()
    foes = [f"foe{i}" for i in range(8)]
    friends = [f"friend{i}" for i in range(8)]
    for i, (foe, friend) in enumerate(zip(foes, friends, strict=True)):
        ground.pod(foe, 1 + i % 2, notes={ANTI_AFFINITY: "foes"})
        ground.pod(friend, 1 + i % 2, notes={AFFINITY: "friends", CARD_POLICY: "spread"})
    check(sorted(ground.cards(name)[0] for name in foes) == list(range(8)), "a card for each foe")
    check(len({ground.cards(name)[0] for name in friends}) == 1, "one card for all friends")


@on_all_grounds
def one_numa_node(ground: Ground) -> None:
    """A pod's cards are on one NUMA node if enough of them are."""
    table = [card(i, 16, numa=i % 2) for i in range(4)]
    ground.node("n1", table)
    ground.cardpack()
    two = {COUNT_LABEL: "2"}
    check(ground.placed("first", 16, labels=two) == [0, 2], "first")
    check(ground.placed("tight", 16, labels=two) == [0, 2], "tight")
    check(ground.placed("second", 16, labels=two) == [1, 3], "second")
    check(ground.placed("half", 8) == [1], "half")
    ground.node("n2", [card(0, 16, numa=0), card(1, 16, numa=1)])
    ground.settle()
    # n1 has room on one card only; the preference is not a condition.
    far = ground.placed("far", 32, labels=two)
    check(far == [0, 1] and ground.get("far")["spec"]["nodeName"] == "n2", far)
