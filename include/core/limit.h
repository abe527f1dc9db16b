/* The limits of core, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Cards of one node: 16 GPUs of 7 MIG instances each are 112. A node that reports more reports
 * nonsense. */
#define LIMIT_CARDS 1024

/*
 * Annotations of a pod that is to share a card, keys and values. The API server refuses every
 * change of a pod with more than 256 KiB of them, also those of the kubelet and the node's agent,
 * but merges those of a Binding without counting. The rest is for these: at most two lists of
 * LIMIT_ALLOCATION_BYTES (bind_op.c), and for what others write on the node.
 */
#define LIMIT_ANNOTATIONS_BYTES     (160 * KIB)
#define LIMIT_ANNOTATIONS_API_BYTES (256 * KIB)

/* The longest list of devices that is kept for a pod: 256 of them have half of that. */
#define LIMIT_DEVICES_BYTES (32 * KIB)

/* A list of cards by index ("0,2"): every index below LIMIT_CARDS takes 5 KiB. */
#define LIMIT_CARD_LIST_BYTES (16 * KIB)

/* The models that a pod names in card-model, and the uuids in card-uuid. Each is compared with the
 * cards of every node. A uuid takes 42 bytes, so the limit in bytes allows some 97 uuids. */
#define LIMIT_WISH_BYTES (4 * KIB)
#define LIMIT_WISH_ITEMS ((size_t)128)

/*
 * The cost of one filter, prioritize, preempt, bind or explain, in steps of about ten nanoseconds
 * (step_budget.h). A filter of 5,000 nodes with eight cards and a hundred pods each takes 50,000 to
 * five million steps. A request that takes more is refused, because the process does nothing else
 * meanwhile. The check comes between nodes, and before a model is matched with a list of patterns,
 * so the last node may go beyond the limit.
 */
#define LIMIT_REQUEST_STEPS UINT64_C(30000000)

/* Bytes that are written, or compared with a pattern, in one step. */
#define LIMIT_STEP_BYTES 8

/* The part of these steps for the search that puts the containers of one pod on different cards.
 * Each node of the request gets an equal part. A bind, which asks about one node, may use all. */
#define LIMIT_APART_LOOKS UINT64_C(4000000)

/* Replicas in one fit question. */
#define LIMIT_WHATIF_REPLICAS 10000

/* Steps to place these replicas, a part of the question's LIMIT_REQUEST_STEPS. */
#define LIMIT_PLAN_LOOKS 10000000

/*
 * Placements that the search for victims tries for all nodes of one preempt, about two microseconds
 * each; kube-scheduler and all other requests wait meanwhile. Beyond it the first set of victims
 * that is found for a node is taken. A placement counts once more for every LIMIT_VICTIM_LOOKS
 * steps of LIMIT_REQUEST_STEPS that it takes.
 */
#define LIMIT_VICTIM_STEPS 16384
#define LIMIT_VICTIM_LOOKS 64

/* The quota ConfigMap's text, read into memory. */
#define LIMIT_QUOTA_ARENA (32 * MIB)

/* Pools, models and limits of one namespace, each. A filter checks all of them for every node. */
#define LIMIT_QUOTA_SCOPES 64

/* Names of deleted nodes that are kept for streams of changes. If more nodes go between two reads
 * of a stream, the stream gets the whole state again. */
#define LIMIT_GONE 64

/* What cards and pods use, of all nodes: 5,000 nodes with 40,000 cards and 20,000 pods take 1.5
 * MiB, and a hostile cardpack-node can send 17 KiB a node. */
#define LIMIT_MEASURED_BYTES (32 * MIB)

/* Pods of one node with a figure. A kubelet runs 110 pods by default. */
#define LIMIT_MEASURED_PODS ((size_t)1000)

/* All PodDisruptionBudgets together: some 100,000 of usual size. Of a budget beyond this limit only
 * its existence is kept: the budget then selects all pods of its namespace. */
#define LIMIT_BUDGETS_BYTES (32 * MIB)
