package conditions

import (
	"fmt"
	"strings"
)

// The rules of the other built-in kinds.

// pod is current when it is ready or has succeeded. It has failed if it ended with an error, or if
// a container crashes again and again.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
func pod(c content) (Phase, string) {
	phase := c.text("status.phase")
	said := aspect{reason: c.text("status.reason"), message: c.text("status.message")}
	switch phase {
	case "":
		return waits("it has no phase yet")
	case "Succeeded":
		return Current, "it has succeeded"
	case "Failed":
		return Failed, said.saying("it has failed")
	case "Running":
		if c.aspect("Ready").status == "True" {
			return Current, "it is ready"
		}
	case "Pending":
	default:
		return Unknown, said.saying("its phase is " + phase)
	}
	waiting, crashing := c.waiting()
	scheduled, ready := c.aspect("PodScheduled"), c.aspect("Ready")
	switch {
	case len(crashing) > 0:
		return Failed, "containers crash again and again: " + strings.Join(crashing, ", ")
	case scheduled.status == "False":
		return InProgress, scheduled.saying("it is not scheduled")
	case len(waiting) > 0:
		return waits("containers wait: %s", strings.Join(waiting, ", "))
	case phase == "Pending":
		return InProgress, said.saying("it is pending")
	}
	return InProgress, ready.saying("it runs, and is not ready")
}

// waiting returns the containers that wait, with their reasons, and those that wait because they
// crash again and again.
func (c content) waiting() (waiting, crashing []string) {
	for _, of := range []string{"status.initContainerStatuses", "status.containerStatuses"} {
		for _, container := range c.items(of) {
			name := container.text("name")
			switch reason := container.text("state.waiting.reason"); reason {
			case "", "PodInitializing", "ContainerCreating":
			case "CrashLoopBackOff":
				crashing = append(crashing, name)
			default:
				waiting = append(waiting, fmt.Sprintf("%s (%s)", name, reason))
			}
		}
	}
	return waiting, crashing
}

// job is current when it is complete.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#terminal-job-conditions
func job(c content) (Phase, string) {
	active, succeeded := c.number("status.active", 0), c.number("status.succeeded", 0)
	failed, suspended := c.number("status.failed", 0), c.flag("spec.suspend")
	end, failure := c.aspect("Complete"), c.aspect("Failed")
	switch {
	case end.status == "True":
		return Current, fmt.Sprintf("it is complete: %d pods have succeeded", succeeded)
	case failure.status == "True":
		return Failed, failure.saying("it has failed")
	case suspended:
		return waits("it is suspended")
	}
	return waits("%d pods are active, %d have succeeded, %d have failed", active, succeeded, failed)
}

// claim is current when it has a volume.
// https://kubernetes.io/docs/concepts/storage/persistent-volumes/#lifecycle-of-a-volume-and-claim
func claim(c content) (Phase, string) {
	switch phase := c.text("status.phase"); phase {
	case "Bound":
		return Current, "it is bound to a volume"
	case "Lost":
		return Failed, "its volume does not exist any more"
	}
	return waits("it is not bound to a volume")
}

// service is current, except that a load balancer needs an address.
// https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer
func service(c content) (Phase, string) {
	if c.text("spec.type") != "LoadBalancer" {
		return Current, "it needs no load balancer"
	}
	if len(c.items("status.loadBalancer.ingress")) == 0 {
		return waits("its load balancer has no address yet")
	}
	return Current, "its load balancer has an address"
}

// definition is current when the server serves the kind under the names that it wants.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
func definition(c content) (Phase, string) {
	names, established := c.aspect("NamesAccepted"), c.aspect("Established")
	switch {
	case names.status == "False":
		return Failed, names.saying("its names are not accepted")
	case established.status == "True":
		return Current, "its kind is served"
	case established.status == "False" && established.reason != "Installing":
		return Failed, established.saying("its kind is not served")
	}
	return waits("its kind is not served yet")
}

// apiService is current when the server behind it answers.
// https://kubernetes.io/docs/tasks/extend-kubernetes/setup-extension-api-server/
func apiService(c content) (Phase, string) {
	a := c.aspect("Available")
	if a.status == "True" {
		return Current, "its server is available"
	}
	return InProgress, a.saying("its server is not available")
}
