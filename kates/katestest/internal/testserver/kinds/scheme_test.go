package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// named are the kinds of client-go's scheme, and those beside it, by their plurals.
func named() map[string][]Served {
	all := map[string][]Served{}
	for _, s := range slices.Concat(OfScheme(scheme.Scheme), Unschemed()) {
		all[s.Plural] = append(all[s.Plural], s)
	}
	return all
}

func TestScopesOfBuiltInKinds(t *testing.T) {
	all := named()
	for clusterScoped, names := range map[bool]string{
		true: "namespaces nodes persistentvolumes componentstatuses clusterroles clusterrolebindings storageclasses ingressclasses " +
			"priorityclasses csidrivers csinodes volumeattachments volumeattributesclasses runtimeclasses validatingwebhookconfigurations mutatingwebhookconfigurations " +
			"validatingadmissionpolicies validatingadmissionpolicybindings certificatesigningrequests clustertrustbundles flowschemas prioritylevelconfigurations " +
			"resourceslices deviceclasses ipaddresses servicecidrs storageversionmigrations tokenreviews subjectaccessreviews customresourcedefinitions apiservices",
		false: "pods services endpoints events configmaps secrets deployments jobs leases endpointslices ingresses networkpolicies roles " +
			"rolebindings poddisruptionbudgets resourceclaims csistoragecapacities localsubjectaccessreviews",
	} {
		for name := range strings.FieldsSeq(names) {
			assert.NotEmpty(t, all[name], name)
			for _, s := range all[name] {
				assert.Equal(t, clusterScoped, s.ClusterScoped, s)
			}
		}
	}
}

func TestListsOptionsAndSubresourcesAreNotKinds(t *testing.T) {
	all := named()
	for _, name := range []string{"podlists", "listoptions", "deleteoptions", "podlogoptions", "scales", "tokenrequests", "rangeallocations", "watchevents", "statuses"} {
		assert.Empty(t, all[name], name)
	}
}

func TestAPluralIsTheUsualOneInEnglish(t *testing.T) {
	for kind, want := range map[string]string{
		"Pod": "pods", "Ingress": "ingresses", "NetworkPolicy": "networkpolicies", "Endpoints": "endpoints", "Gateway": "gateways", "Y": "ies",
	} {
		assert.Equal(t, want, Plural(schema.GroupVersionKind{Version: "v1", Kind: kind}), kind)
	}
}
