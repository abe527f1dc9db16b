/*
 * The parts of a running program that more than one module of daemon needs: the reload, the
 * shutdown, and daemon.c, which opens and closes them. A part that does not exist is NULL.
 */
#pragma once

struct parts {
    struct service *service;
    struct kube_api *api;
    struct kube_backend *kube;
    struct budget_feed *budgets;
    struct authentication *authentication;
    struct http_server *server;
    struct http_server *probes;
};
