// Package events records events (events.k8s.io/v1) about objects, as kubectl describe shows them:
// what a program did, or could not do.
//
//	recorder, err := events.NewRecorder(ctx, client, "example.com/dns")
//	if err != nil { ... }
//	defer recorder.Close()
//	recorder.Eventf(app, nil, events.Warning, "NoZone", "PutRecord", "there is no zone for %s", host)
//
// It is client-go's k8s.io/client-go/tools/events, which aggregates events, on a kates client: on
// a real API server or on katestest's fake. It is a separate package because client-go's one
// imports the typed clients, and a program that records no events does not need those.
//
// See https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/ and
// KEP-383.
package events
