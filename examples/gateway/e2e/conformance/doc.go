// Package conformance runs the conformance tests of the Gateway API
// (sigs.k8s.io/gateway-api/conformance) against the gateway: the program itself as a process, a
// real nginx, and a real API server. There are no nodes: a [cluster] plays the controllers and the
// kubelets, and the containers are servers in the test's own process, on loopback addresses.
//
// CONFORMANCE.md, in the folder of the gateway, says which tests pass. The test checks it.
package conformance
