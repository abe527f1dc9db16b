/*
 * What cards and pods really use, as cardpack-node measures it in MiB. It is shown in the unit of the
 * card's other figures, which follows from the two sizes of the card: as core/state/measured.c does it.
 */
const MIB_A_GIB = 1024;

const is_known = (card) => card.usedMiB !== undefined && card.total > 0 && card.sizeMiB > 0;

const unit_of = (card) => (Math.floor(card.sizeMiB / 32) >= card.total ? MIB_A_GIB : 1);

/* So many MiB in the unit of the card, as a number; null: unknown. */
export const real_amount = (card, mib) => (is_known(card) && mib !== undefined ? mib / unit_of(card) : null);

/* GiB with one decimal, rounded down, so that what is below a size is not shown as the size. */
const text_of = (amount) => String(Math.floor(amount * 10) / 10);

/* "30.2 really used, 37% busy"; "" if it is unknown. */
export function real_card(card) {
    const amount = real_amount(card, card.usedMiB);
    const busy = card.busy === undefined ? "" : `, ${card.busy}% busy`;
    return amount === null ? "" : `${text_of(amount)} really used${busy}`;
}

/* "21.4 really used, more than its share"; "" if it is unknown. */
export function real_pod(card, p) {
    const amount = real_amount(card, p.usedMiB);
    return amount === null ? "" : `${text_of(amount)} really used${p.exceeds ? ", more than its share" : ""}`;
}

export const real_exceeds = (card) => (card.pods ?? []).some((p) => p.exceeds);

/* Of the cards of a node of which it is known: "31 of 160 really used"; "" if of none. */
export function real_node(entry) {
    const known = entry.cards.filter((c) => c.id >= 0 && is_known(c));
    const used = known.reduce((sum, c) => sum + real_amount(c, c.usedMiB), 0);
    const size = known.reduce((sum, c) => sum + c.total, 0);
    return known.length === 0 ? "" : `${text_of(used)} of ${size} really used`;
}
