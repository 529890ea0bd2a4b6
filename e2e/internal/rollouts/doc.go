// Package rollouts makes recordings of what happens in clusters, on a real API server: those in
// testdata/recordings, by `go run ./cmd/recordings`. A client of kates watches, and
// katestest.Record records it. Nothing else runs beside the API server, so the package plays the
// controller manager, the scheduler and the kubelets. Start from [Scenarios].
package rollouts
