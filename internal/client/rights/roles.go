package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Roles makes roles of that name: one for the cluster, or nil if it would allow nothing, and one
// for each namespace, in order.
func (s *Set) Roles(name string) (cluster *rbacv1.ClusterRole, namespaced []*rbacv1.Role) {
	all := s.Rights()
	for len(all) > 0 {
		namespace, n := all[0].Namespace, 0
		for n < len(all) && all[n].Namespace == namespace {
			n++
		}
		rules := rulesOf(all[:n])
		all = all[n:]
		if namespace == "" {
			cluster = &rbacv1.ClusterRole{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
				ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
			}
			continue
		}
		namespaced = append(namespaced, &rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Rules: rules,
		})
	}
	return cluster, namespaced
}

// rulesOf makes as few rules of the rights in one place as are easy to read: resources of a group
// for which the same verbs are allowed share one, and so do the names of a resource.
func rulesOf(all []Right) (rules []rbacv1.PolicyRule) {
	for _, r := range all { // by group, resource and name
		last := len(rules) - 1
		if last >= 0 && about(rules[last], r.Group, r.Resource, r.Name) {
			rules[last].Verbs = append(rules[last].Verbs, r.Verb)
			continue
		}
		one := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}}
		if r.Name != "" {
			one.ResourceNames = []string{r.Name}
		}
		rules = append(rules, one)
	}
	rules = merged(rules, func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames })
	return merged(rules, func(r *rbacv1.PolicyRule) *[]string { return &r.Resources })
}

func about(rule rbacv1.PolicyRule, group, resource, name string) bool {
	return rule.APIGroups[0] == group && rule.Resources[0] == resource && strings.Join(rule.ResourceNames, "") == name
}

// merged joins rules that differ in one list of words alone, if both have some there.
func merged(rules []rbacv1.PolicyRule, list func(*rbacv1.PolicyRule) *[]string) (all []rbacv1.PolicyRule) {
	for _, rule := range rules {
		words := *list(&rule)
		at := slices.IndexFunc(all, func(other rbacv1.PolicyRule) bool {
			if len(words) == 0 || len(*list(&other)) == 0 {
				return false
			}
			a, b := rule, other
			*list(&a), *list(&b) = nil, nil
			return same(a, b)
		})
		if at < 0 {
			all = append(all, rule)
			continue
		}
		to := list(&all[at])
		*to = append(slices.Clone(*to), words...)
	}
	return all
}

func same(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.Verbs, b.Verbs)
}
