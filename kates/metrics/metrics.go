// Package metrics has the types of the metrics API
// (https://github.com/kubernetes-sigs/metrics-server). It is a module of its own, because few
// programs need them.
//
// The API server computes metrics for each request. So they can be read and listed, and not
// watched:
//
//	var pods []*metrics.PodMetrics
//	err := client.List(ctx, kates.Query{Kind: "pods.metrics.k8s.io"}, &pods)
package metrics

import metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

// NodeMetrics is what a node uses, PodMetrics what the containers of a pod use.
type (
	NodeMetrics      = metricsv1beta1.NodeMetrics
	PodMetrics       = metricsv1beta1.PodMetrics
	ContainerMetrics = metricsv1beta1.ContainerMetrics
)
