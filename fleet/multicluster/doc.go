// Package multicluster lets a fleet and multicluster-runtime use each other's clusters
// (sigs.k8s.io/multicluster-runtime).
//
//   - [NewSource] makes a source of a fleet of any provider of multicluster-runtime.
//   - [NewProvider] makes a provider of a fleet, for programs with controllers of
//     multicluster-runtime.
//
// It is a module of its own, so that controller-runtime stays out of the library.
package multicluster
