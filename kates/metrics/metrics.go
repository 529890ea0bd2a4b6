// Package metrics has the names for the types of the metrics API
// (https://github.com/kubernetes-sigs/metrics-server) that Emissary's code uses. It is a module of
// its own, because few programs need them. New code needs k8s.io/metrics alone.
//
// The API server computes metrics for each request. So they can be read and listed, and not
// watched:
//
//	var pods []*metricsv1beta1.PodMetrics
//	err := client.List(ctx, kates.Query{Kind: "pods.metrics.k8s.io"}, &pods)
package metrics

import metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

// For Emissary's code: NodeMetrics is what a node uses, PodMetrics what the containers of a pod
// use. New code uses the types of k8s.io/metrics, such as [metricsv1beta1.PodMetrics].
type (
	NodeMetrics      = metricsv1beta1.NodeMetrics
	PodMetrics       = metricsv1beta1.PodMetrics
	ContainerMetrics = metricsv1beta1.ContainerMetrics
)
