package workload

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunningPod returns the i-th pod as a server has it: with the status that a kubelet reports, and
// with managed fields like those of its two writers.
func RunningPod(i int) (*corev1.Pod, error) {
	p := Pod(i)
	spec, err := managed(p, "kube-controller-manager", "", "f:metadata", "f:spec")
	if err != nil {
		return nil, err
	}
	p.Status = podStatus(i)
	status, err := managed(p, "kubelet", "status", "f:status")
	if err != nil {
		return nil, err
	}
	p.ManagedFields = []metav1.ManagedFieldsEntry{spec, status}
	return p, nil
}

// managed is the entry of a writer of some parts of an object.
func managed(o any, manager, subresource string, parts ...string) (e metav1.ManagedFieldsEntry, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return e, err
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return e, err
	}
	all := fieldsOf(content).(map[string]any)
	owned := map[string]any{}
	for _, part := range parts {
		owned[part] = all[part]
	}
	raw, err := json.Marshal(owned)
	at := metav1.Unix(1_760_000_000, 0)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)), Subresource: subresource,
	}, err
}

// fieldsOf names the fields of a value as managed fields do. Elements of lists go by their name,
// type or path, where they have one, and by their place else.
func fieldsOf(value any) any {
	fields := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			fields["f:"+name] = fieldsOf(member)
		}
	case []any:
		for i, element := range v {
			key := fmt.Sprint("i:", i)
			member, _ := element.(map[string]any)
			for _, by := range []string{"type", "mountPath", "containerPort", "name", "uid"} {
				if name, ok := member[by]; ok {
					text, _ := json.Marshal(map[string]any{by: name}) // a text or a number
					key = "k:" + strings.TrimSpace(string(text))
				}
			}
			fields[key] = fieldsOf(element)
		}
	}
	return fields
}
