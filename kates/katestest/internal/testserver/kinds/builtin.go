package kinds

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served is how a kind of a scheme is served, as far as its Go type does not tell.
type Served struct {
	schema.GroupVersionKind
	Plural        string
	ClusterScoped bool
	ShortNames    []string
}

// stable is a version that an API server serves by default.
var stable = regexp.MustCompile(`^v[0-9]+$`)

// BuiltIn returns the kinds of a scheme that a server serves by default: stable versions alone.
func BuiltIn(scheme *runtime.Scheme, served []Served) (all []*Kind) {
	for _, s := range served {
		if !stable.MatchString(s.Version) || s.Group == "extensions" || notStored[s.Kind] {
			continue
		}
		k := &Kind{
			GroupVersionKind: s.GroupVersionKind, Resource: s.Plural, Singular: strings.ToLower(s.Kind), ShortNames: s.ShortNames,
			Namespaced: !s.ClusterScoped, Storage: s.Plural, Rules: rulesOf(s.GroupKind()),
		}
		if s.Group != "" {
			k.Storage += "." + s.Group
		}
		if s.Kind == "Event" {
			k.Storage = "events"
		}
		if inAll[s.GroupKind().String()] {
			k.Categories = []string{"all"}
		}
		o, err := scheme.New(s.GroupVersionKind)
		if err != nil || s.Group == "apiextensions.k8s.io" { // a program may add its Go type // no Go type: its content is as it is sent
			k.Custom = &Custom{StoredVersion: s.Version}
			if s.Kind == "CustomResourceDefinition" {
				k.Custom.StoredVersion, k.Categories = "v1beta1", []string{"api-extensions"}
			}
		}
		if err != nil {
			k.Subresources = append(k.Subresources, "status")
		} else if k.ZeroStatus = zeroStatus(o); k.ZeroStatus != nil {
			k.Subresources = append(k.Subresources, "status")
		}
		k.Subresources = append(k.Subresources, more[s.Kind]...)
		all = append(all, k)
	}
	return all
}

// zeroStatus is the status of an object of a Go type, nil if the type has none.
func zeroStatus(o runtime.Object) map[string]any {
	f := reflect.ValueOf(o).Elem().FieldByName("Status")
	if !f.IsValid() || f.Kind() != reflect.Struct {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.Addr().Interface())
	if err != nil {
		return map[string]any{} // it has a form of its own
	}
	return content
}

// notStored are the kinds of requests that store nothing.
var notStored = map[string]bool{
	"Binding": true, "ComponentStatus": true, "LocalSubjectAccessReview": true, "SelfSubjectAccessReview": true,
	"SelfSubjectReview": true, "SelfSubjectRulesReview": true, "SubjectAccessReview": true, "TokenReview": true,
}

var more = map[string][]string{
	"CertificateSigningRequest": {"approval"},
	"Deployment":                {"scale"},
	"Namespace":                 {"finalize"},
	"Pod":                       {"binding", "eviction"},
	"ReplicaSet":                {"scale"},
	"ReplicationController":     {"scale"},
	"ServiceAccount":            {"token"},
	"StatefulSet":               {"scale"},
}

var inAll = map[string]bool{
	"Pod": true, "Service": true, "ReplicationController": true, "DaemonSet.apps": true, "Deployment.apps": true, "ReplicaSet.apps": true,
	"StatefulSet.apps": true, "HorizontalPodAutoscaler.autoscaling": true, "Job.batch": true, "CronJob.batch": true,
}

// withGeneration are the built-in kinds whose objects have a generation.
var withGeneration = map[string]bool{
	"CronJob.batch": true, "CustomResourceDefinition.apiextensions.k8s.io": true, "DaemonSet.apps": true, "Deployment.apps": true, "EndpointSlice.discovery.k8s.io": true,
	"FlowSchema.flowcontrol.apiserver.k8s.io": true, "HorizontalPodAutoscaler.autoscaling": true, "IngressClass.networking.k8s.io": true, "Ingress.networking.k8s.io": true, "Job.batch": true,
	"MutatingWebhookConfiguration.admissionregistration.k8s.io": true, "NetworkPolicy.networking.k8s.io": true, "Pod": true, "PodTemplate": true,
	"PodDisruptionBudget.policy": true, "PriorityClass.scheduling.k8s.io": true, "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": true,
	"ReplicaSet.apps": true, "ReplicationController": true, "StatefulSet.apps": true, "ValidatingAdmissionPolicy.admissionregistration.k8s.io": true,
	"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": true, "ValidatingWebhookConfiguration.admissionregistration.k8s.io": true,
}

// byPut are the kinds of which a PUT creates what does not exist.
var byPut = []string{
	"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io", "Endpoints", "Event", "Event.events.k8s.io",
	"Lease.coordination.k8s.io", "LimitRange", "Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io", "Service",
}

// fieldsOf are the fields that built-in kinds can be selected by.
var fieldsOf = map[string][]string{
	"CertificateSigningRequest.certificates.k8s.io": {"spec.signerName"},
	"Event":                         eventFields,
	"Job.batch":                     {"status.successful"},
	"Namespace":                     {"status.phase"},
	"Node":                          {"spec.unschedulable"},
	"Pod":                           {"spec.hostNetwork", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.nominatedNodeName", "status.phase", "status.podIP"},
	"ReplicationController":         {"status.replicas"},
	"Event.events.k8s.io":           newEventFields,
	"ResourceSlice.resource.k8s.io": {"spec.driver", "spec.nodeName"},
	"Secret":                        {"type"},
	"Service":                       {"spec.clusterIP", "spec.type"},
}

var eventFields = []string{
	"involvedObject.apiVersion", "involvedObject.fieldPath", "involvedObject.kind", "involvedObject.name", "involvedObject.namespace",
	"involvedObject.resourceVersion", "involvedObject.uid", "reason", "reportingComponent", "source", "type",
}

// newEventFields are those of events in their newer version.
var newEventFields = []string{
	"reason", "regarding.apiVersion", "regarding.fieldPath", "regarding.kind", "regarding.name", "regarding.namespace",
	"regarding.resourceVersion", "regarding.uid", "reportingController", "type",
}

func rulesOf(gk schema.GroupKind) Rules {
	name := gk.String()
	r := Rules{
		Generation: withGeneration[name], UpsertByPut: slices.Contains(byPut, name), Fields: fieldsOf[name], Name: validation.NameIsDNSSubdomain,
		Versioned: name == "Lease.coordination.k8s.io" || name == "CustomResourceDefinition.apiextensions.k8s.io",
	}
	switch name {
	case "Service":
		r.Name, r.AnswersObject = validation.NameIsDNS1035Label, true
	case "ServiceAccount", "ResourceQuota", "PodTemplate":
		r.AnswersObject = true
	case "Pod":
		r.Grace, r.StatusKeepsOwners, r.StartStatus = true, true, map[string]any{"phase": "Pending"}
	case "Namespace":
		r.Name, r.StartStatus = validation.NameIsDNSLabel, map[string]any{"phase": "Active"}
		r.AnswersObject = true
	case "PersistentVolume", "PersistentVolumeClaim":
		r.StartStatus = map[string]any{"phase": "Pending"}
	case "Deployment.apps":
		r.StatusKeepsLabels, r.Counted, r.Fixed = true, []string{"annotations"}, []string{"spec.selector"}
	case "EndpointSlice.discovery.k8s.io":
		r.Counted = []string{"annotations", "labels"}
	case "DaemonSet.apps", "ReplicaSet.apps", "StatefulSet.apps", "Job.batch":
		r.Fixed = []string{"spec.selector"}
	case "Node":
		r.KeepsStatus = true
	case "ConfigMap", "Secret":
		r.Immutable = []string{"data", "binaryData"}
	}
	if name == "Secret" {
		r.Fixed = []string{"type"}
	}
	if gk.Group == "rbac.authorization.k8s.io" {
		r.Name = segmentName
	}
	return r
}

// segmentName says what is wrong with a name that may be any segment of a path.
func segmentName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
