package selectable

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtIn has the fields by which kube-apiserver selects the objects of each resource, and their
// values, in any supported version: a server refuses what it does not know yet, and kates asks it. A
// resource or version that is not here is left to the server. Some of the server's
// strategies compute fields that its API refuses (a ReplicaSet's status.replicas, the name of a
// PersistentVolume): these are not selectable.
var builtIn = map[schema.GroupVersionResource]Fields{
	in("", "v1", "pods"): {
		"spec.nodeName":      text("spec.nodeName"),
		"spec.host":          text("spec.nodeName"), // its name in old clients
		"spec.restartPolicy": or(text("spec.restartPolicy"), "Always"),
		"spec.schedulerName": or(text("spec.schedulerName"), "default-scheduler"),
		// The deprecated alias counts if the field is empty.
		"spec.serviceAccountName": either(text("spec.serviceAccountName"), text("spec.serviceAccount")),
		"spec.hostNetwork":        flag("spec.hostNetwork"),
		"status.phase":            text("status.phase"),
		// If the two contradict each other, podIP counts.
		"status.podIP":             either(text("status.podIP"), firstPodIP),
		"status.podIPs":            nothing, // accepted, and never set
		"status.nominatedNodeName": text("status.nominatedNodeName"),
	},
	in("", "v1", "events"):                 events("involvedObject", "source.component", "reportingComponent", "source"),
	in("events.k8s.io", "v1", "events"):    events("regarding", "deprecatedSource.component", "reportingController", ""),
	in("", "v1", "namespaces"):             {"status.phase": or(text("status.phase"), "Active")},
	in("", "v1", "nodes"):                  {"spec.unschedulable": flag("spec.unschedulable")},
	in("", "v1", "replicationcontrollers"): {"status.replicas": count("status.replicas")},
	in("", "v1", "secrets"):                {"type": or(text("type"), "Opaque")},
	in("", "v1", "services"): {
		"spec.clusterIP": text("spec.clusterIP"),
		"spec.type":      or(text("spec.type"), "ClusterIP"),
	},
	in("batch", "v1", "jobs"): {"status.successful": count("status.succeeded")},

	in("certificates.k8s.io", "v1", "certificatesigningrequests"):   signer,
	in("certificates.k8s.io", "v1", "clustertrustbundles"):          signer,
	in("certificates.k8s.io", "v1alpha1", "clustertrustbundles"):    signer,
	in("certificates.k8s.io", "v1beta1", "clustertrustbundles"):     signer,
	in("certificates.k8s.io", "v1", "podcertificaterequests"):       podCertificates,
	in("certificates.k8s.io", "v1alpha1", "podcertificaterequests"): podCertificates,
	in("certificates.k8s.io", "v1beta1", "podcertificaterequests"):  podCertificates,

	in("resource.k8s.io", "v1", "resourceslices"):      slicesOfDevices,
	in("resource.k8s.io", "v1beta2", "resourceslices"): slicesOfDevices,
	in("resource.k8s.io", "v1beta1", "resourceslices"): slicesOfDevices,
}

var (
	signer          = Fields{"spec.signerName": text("spec.signerName")}
	podCertificates = Fields{
		"spec.signerName": text("spec.signerName"),
		"spec.podName":    text("spec.podName"),
		"spec.nodeName":   text("spec.nodeName"),
	}
	slicesOfDevices = Fields{
		"spec.nodeName":  text("spec.nodeName"),
		"spec.driver":    text("spec.driver"),
		"spec.pool.name": text("spec.pool.name"), // since 1.37
	}
)

// events returns the fields of events, which are one resource with other names in each of its two
// groups. The source falls back on the controller, but not the other way round. events.k8s.io has
// no label for the source.
func events(about, source, controller, sourceLabel string) Fields {
	f := Fields{"reason": text("reason"), "type": text("type"), controller: text(controller)}
	for _, part := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		f[about+"."+part] = text(about + "." + part)
	}
	if sourceLabel != "" {
		f[sourceLabel] = either(text(source), text(controller))
	}
	return f
}

func in(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// at reads the value at a dotted path.
func at(path string) func(map[string]any) any {
	keys := strings.Split(path, ".")
	return func(o map[string]any) any {
		v, _, _ := unstructured.NestedFieldNoCopy(o, keys...)
		return v
	}
}

// text reads a string, empty if it is missing.
func text(path string) value {
	get := at(path)
	return value{paths: []string{path}, read: func(o map[string]any) string {
		s, _ := get(o).(string)
		return s
	}}
}

// flag reads a boolean, false if it is missing.
func flag(path string) value {
	get := at(path)
	return value{paths: []string{path}, read: func(o map[string]any) string {
		b, _ := get(o).(bool)
		return strconv.FormatBool(b)
	}}
}

// count reads an integer, zero if it is missing.
func count(path string) value {
	get := at(path)
	return value{paths: []string{path}, read: func(o map[string]any) string {
		switch n := get(o).(type) {
		case int64:
			return strconv.FormatInt(n, 10)
		case float64:
			return strconv.FormatInt(int64(n), 10)
		}
		return "0"
	}}
}

// or reads v, with the value that the server sets by default.
func or(v value, standard string) value {
	return either(v, value{read: func(map[string]any) string { return standard }})
}

// either reads first, or second if that is empty.
func either(first, second value) value {
	return value{paths: slices.Concat(first.paths, second.paths), read: func(o map[string]any) string {
		if s := first.read(o); s != "" {
			return s
		}
		return second.read(o)
	}}
}

var nothing = value{read: func(map[string]any) string { return "" }}

var firstPodIP = value{paths: []string{"status.podIPs"}, read: func(o map[string]any) string {
	ips, _, _ := unstructured.NestedFieldNoCopy(o, "status", "podIPs")
	if all, ok := ips.([]any); ok && len(all) > 0 {
		if first, ok := all[0].(map[string]any); ok {
			ip, _ := first["ip"].(string)
			return ip
		}
	}
	return ""
}}
