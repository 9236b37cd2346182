// Rename of memory resources and agents, and how many agents use a memory.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { agent, memory, pod, REDIS } from '../manifests.mjs';
import { CAPABILITIES, session } from '../client.mjs';

// The message of the refusal.
async function refused(answer) {
    const why = await answer.then(
        (edit) => assert.fail(`not refused: ${JSON.stringify(edit)}`),
        (error) => error,
    );
    assert.ok(!(why instanceof assert.AssertionError), why.message);
    return why.message;
}

const refusal = async (files, [name, piece, to = 'recall', from], options) => {
    let message;
    await session(files, async (editor) => {
        await editor.open(name);
        message = await refused(editor.renameEdit(name, piece, to, from));
    }, options);
    return message;
};

export const a_memory_is_renamed_with_what_names_it = () =>
    session({
        'memory.yaml': memory(),
        'agents/one.yaml': agent().replace('name: notes', "name: 'notes'  # of all"),
        'agents/two.yaml': `# both\n${agent('a').replace('name: notes', 'name: "notes"')}---\n${agent('b', 'other')}`,
        'other.yaml': agent('elsewhere').replace('team-a', 'team-b'),
    }, async (editor) => {
        assert.deepEqual(editor.abilities.renameProvider, { prepareProvider: true });
        await editor.open('memory.yaml');
        assert.deepEqual(await editor.prepareRename('memory.yaml', 'notes'), { text: 'notes', placeholder: 'notes' });
        const changed = await editor.rename('memory.yaml', 'notes', 'recall');
        assert.deepEqual(changed, ['agents/one.yaml', 'agents/two.yaml', 'memory.yaml']);
        assert.equal(editor.text('memory.yaml'), memory('recall'));
        assert.equal(editor.text('agents/one.yaml'), agent().replace('name: notes', "name: 'recall'  # of all"));
        assert.equal(
            editor.text('agents/two.yaml'),
            `# both\n${agent('a').replace('name: notes', 'name: "recall"')}---\n${agent('b', 'other')}`,
        );
    });

export const a_reference_renames_its_object_as_well = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent().replace('name: notes', 'name: "notes"') }, async (editor) => {
        await editor.open('agent.yaml');
        assert.deepEqual(await editor.prepareRename('agent.yaml', 'notes'), { text: 'notes', placeholder: 'notes' });
        assert.deepEqual(await editor.rename('agent.yaml', 'notes', 'recall'), ['agent.yaml', 'memory.yaml']);
        assert.equal(editor.text('memory.yaml'), memory('recall'));
        // A name that YAML would read as a number is in quotes.
        await editor.rename('agent.yaml', 'recall', '0x10');
        assert.equal(editor.text('memory.yaml'), memory('"0x10"'));
    });

export const texts_of_the_editor_win = () =>
    session({ 'memory.yaml': memory('old'), 'agent.yaml': agent('scout', 'old'), 'late.yaml': agent('late', 'notes') }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.replace('memory.yaml', 'name: old', '# new\n  name: notes');
        await editor.open('agent.yaml');
        await editor.replace('agent.yaml', 'model', '# more\n  model');
        // Not on disk yet.
        await editor.open('new.yaml', agent('new', 'notes'));
        assert.deepEqual(await editor.rename('memory.yaml', 'notes', 'recall'), ['late.yaml', 'memory.yaml', 'new.yaml']);
        assert.equal(editor.text('new.yaml'), agent('new', 'recall'));
        assert.equal(editor.text('memory.yaml'), memory('old').replace('name: old', '# new\n  name: recall'));
        assert.equal(readFileSync(editor.path('memory.yaml'), 'utf8'), memory('old'));
    });

export const an_agent_is_renamed_with_its_pods = () =>
    session({ 'agent.yaml': agent(), 'pod.yaml': pod(), 'memory.yaml': memory(), 'deployment.yaml': deployment('arkonis.dev/deployment: scout', 'labels') }, async (editor) => {
        await editor.open('agent.yaml');
        assert.deepEqual(await editor.rename('agent.yaml', 'scout', 'finder'), ['agent.yaml', 'deployment.yaml', 'pod.yaml']);
        assert.ok(editor.text('pod.yaml').includes('arkonis.dev/deployment: finder'));
        assert.equal(editor.text('deployment.yaml'), deployment('arkonis.dev/deployment: finder', 'labels'));
        const message = await refused(editor.renameEdit('agent.yaml', 'finder', 'a'.repeat(64)));
        assert.match(message, /^(deployment|pod)\.yaml:\d+: the value of a label has at most 63 characters$/);
    });

const deployment = (line, field) =>
    `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: own, namespace: team-a}\nspec:\n  template:\n    metadata:\n      ${field}:\n        ${line}\n    spec: {containers: [{name: agent, image: own}]}\n`;

export const selectors_and_other_references_follow = () =>
    session({
        'agent.yaml': agent(),
        'deployment.yaml': deployment('arkonis.dev/deployment: scout', 'labels').replace('spec:\n', 'spec:\n  selector: {matchLabels: {arkonis.dev/deployment: scout}}\n'),
        'service.yaml': 'apiVersion: v1\nkind: Service\nmetadata: {name: own, namespace: team-a}\nspec: {ports: [{port: 80}], selector: {arkonis.dev/deployment: scout}}\n',
        'swarm.yaml': 'apiVersion: kubeswarm.io/v1alpha1\nkind: SwarmAgent\nmetadata: {name: first, namespace: team-a}\nspec: {model: m}\n---\napiVersion: kubeswarm.io/v1alpha1\nkind: SwarmAgent\nmetadata: {name: second, namespace: team-a}\nspec: {model: m, gateway: {fallback: {agentRef: {name: first}}}}\n',
        'ensemble.yaml': 'apiVersion: sympozium.ai/v1alpha1\nkind: Ensemble\nmetadata: {name: crew, namespace: team-a}\nspec: {agentConfigs: [{name: a, systemPrompt: x}]}\n',
        'member.yaml': deployment('sympozium.ai/ensemble: crew', 'labels'),
    }, async (editor) => {
        await editor.open('agent.yaml');
        assert.deepEqual(await editor.rename('agent.yaml', 'scout', 'finder'), ['agent.yaml', 'deployment.yaml', 'service.yaml']);
        assert.equal(editor.text('deployment.yaml').split('arkonis.dev/deployment: finder').length, 3);
        await editor.open('swarm.yaml');
        assert.deepEqual(await editor.rename('swarm.yaml', 'first', 'one'), ['swarm.yaml']);
        assert.equal(editor.text('swarm.yaml').split('one').length, 3);
        await editor.open('ensemble.yaml');
        assert.deepEqual(await editor.rename('ensemble.yaml', 'crew', 'team'), ['ensemble.yaml', 'member.yaml']);
    });

export const what_a_pattern_selects_is_not_renamed = async () => {
    const files = {
        'memory.yaml': memory(),
        'agent.yaml': agent(),
        'kustomization.yaml': 'resources: [memory.yaml, agent.yaml]\npatches:\n  - target: {kind: ArkAgent, name: "sc.*"}\n    path: changes.yaml\n',
        'changes.yaml': '- {op: add, path: /spec/memoryRef/name, value: notes}\n',
    };
    const message = await refusal(files, ['agent.yaml', 'scout', 'finder']);
    assert.equal(message, 'kustomization.yaml:3: this pattern selects ArkAgent "team-a/scout", and does not follow it');
    await session(files, async (editor) => {
        await editor.open('memory.yaml');
        assert.deepEqual(await editor.rename('memory.yaml', 'notes', 'recall'), ['agent.yaml', 'changes.yaml', 'memory.yaml']);
    });
};

const ARK = { api: 'ark.mckinsey.com/v1alpha1' };
const ark = (kind, name, spec, namespace = 'team-a') =>
    `apiVersion: ${ARK.api}\nkind: ${kind}\nmetadata: {name: ${name}${namespace ? `, namespace: ${namespace}` : ''}}\nspec: ${spec}\n`;

export const each_form_of_a_reference_follows = () =>
    session({
        'memory.yaml': ark('Memory', 'notes', '{address: {value: "http://a"}}', 'notes'),
        'query.yaml': ark('Query', 'q', '{input: x, memory: {name: notes, namespace: notes}}'),
        'own.yaml': ark('Query', 'q', '{input: x, memory: {name: notes}}'),
        'config.yaml': ark('ArkConfig', 'default', '{defaultMemory: {name: notes}}', ''),
        'deployment.yaml': deployment('memgate.dev/ark-memory: notes/notes', 'annotations'),
    }, async (editor) => {
        await editor.open('deployment.yaml');
        assert.deepEqual(await editor.prepareRename('deployment.yaml', 'notes/notes'), null);
        assert.deepEqual(await editor.prepareRename('deployment.yaml', 'notes\n'), { text: 'notes', placeholder: 'notes' });
        assert.deepEqual(
            await editor.rename('deployment.yaml', 'notes\n', 'recall'),
            ['config.yaml', 'deployment.yaml', 'memory.yaml', 'query.yaml'],
        );
        assert.equal(editor.text('deployment.yaml'), deployment('memgate.dev/ark-memory: notes/recall', 'annotations'));
        assert.equal(editor.text('query.yaml'), ark('Query', 'q', '{input: x, memory: {name: recall, namespace: notes}}'));
        assert.equal(editor.text('config.yaml'), ark('ArkConfig', 'default', '{defaultMemory: {name: recall}}', ''));
    });

export const names_of_all_platforms_follow = () =>
    session({
        'orloj.yaml': 'apiVersion: orloj.dev/v1\nkind: Memory\nmetadata: {name: a, namespace: ops, annotations: {orloj.dev/target-namespace: ops}}\nspec: {provider: in-memory}\n---\napiVersion: orloj.dev/v1\nkind: Agent\nmetadata: {name: b, namespace: ops}\nspec: {model_ref: m, prompt: p, memory: {ref: a}}\n',
        'orka.yaml': 'apiVersion: core.orka.ai/v1alpha1\nkind: Agent\nmetadata: {name: a, namespace: ops}\nspec: {coordination: {allowedAgents: [{name: a}, {name: z}]}}\n---\napiVersion: core.orka.ai/v1alpha1\nkind: Task\nmetadata: {name: t, namespace: other}\nspec: {type: agent, agentRef: {name: a, namespace: ops}}\n',
        'sympozium.yaml': 'apiVersion: sympozium.ai/v1alpha1\nkind: Agent\nmetadata: {name: a, namespace: ops}\nspec: {agents: {default: {model: m}}}\n---\napiVersion: sympozium.ai/v1alpha1\nkind: AgentRun\nmetadata: {name: r, namespace: ops}\nspec: {agentRef: a, task: x}\n',
        'kubeswarm.yaml': 'apiVersion: kubeswarm.io/v1alpha1\nkind: SwarmAgent\nmetadata: {name: a, namespace: ops}\nspec: {model: m, agents: [{name: x, agentRef: {name: a}}]}\n',
        'kagent.yaml': 'apiVersion: api.kagent.dev/v1alpha3\nkind: Harness\nmetadata: {name: a, namespace: ops}\nspec: {kagent: {}}\n---\napiVersion: api.kagent.dev/v1alpha3\nkind: Agent\nmetadata: {name: b, namespace: ops}\nspec: {harnessRef: {name: a}}\n',
    }, async (editor) => {
        for (const name of ['orloj.yaml', 'orka.yaml', 'sympozium.yaml', 'kubeswarm.yaml', 'kagent.yaml']) {
            await editor.open(name);
            const before = editor.text(name);
            assert.deepEqual(await editor.rename(name, 'a, namespace', 'renamed'), [name]);
            const after = before.replaceAll(/(name|ref|agentRef): a\b/gi, '$1: renamed');
            assert.equal(editor.text(name), after);
            assert.equal(after.split('renamed').length, 3 + Number(name === 'orka.yaml'), after);
        }
    });

const KUSTOMIZATION = `resources: [memory.yaml, agent.yaml]
patches:
  - target: {kind: ArkMemory, name: "notes"}  # this one
    path: memory-patch.yaml
  - target: {group: arkonis.dev, kind: ArkAgent, name: scout}
    path: agent-changes.yaml
  - patch: |-
      # ä
      apiVersion: arkonis.dev/v1alpha1
      kind: ArkAgent
      metadata: {name: scout, namespace: team-a}
      spec: {systemPrompt: "ä", memoryRef: {name: 'notes'}}
  - target: {kind: Secret, name: notes}
    patch: |-
      - {op: remove, path: /data}
replacements:
  - source: {kind: ArkMemory, name: notes, fieldPath: metadata.name}
    targets:
      - select: {kind: ArkMemory, name: notes}
        reject: [{kind: ArkMemory, name: other}]
`;

export const kustomizations_and_patches_follow = () =>
    session({
        'memory.yaml': memory(),
        'agent.yaml': agent(),
        'kustomization.yaml': KUSTOMIZATION,
        'memory-patch.yaml': 'apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: notes  # the same\nspec: {backend: redis}\n',
        'agent-changes.yaml': '- {op: add, path: /spec/memoryRef/name, value: notes}\n- {op: replace, path: /spec/memoryRef, value: {name: notes}}\n- {op: add, path: /spec/model, value: notes}\n',
    }, async (editor) => {
        await editor.open('memory.yaml');
        assert.deepEqual(
            await editor.rename('memory.yaml', 'notes', 'recall'),
            ['agent-changes.yaml', 'agent.yaml', 'kustomization.yaml', 'memory-patch.yaml', 'memory.yaml'],
        );
        assert.equal(
            editor.text('kustomization.yaml'),
            KUSTOMIZATION.replace('"notes"', '"recall"').replace("'notes'", "'recall'").replaceAll('ArkMemory, name: notes', 'ArkMemory, name: recall'),
        );
        assert.ok(editor.text('memory-patch.yaml').includes('  name: recall  # the same\n'));
        assert.equal(editor.text('agent-changes.yaml').replaceAll('recall', 'notes'), readFileSync(editor.path('agent-changes.yaml'), 'utf8'));
        assert.equal(editor.text('agent-changes.yaml').split('recall').length, 3);
        // From a patch or a kustomization too, with the text of the editor.
        await editor.replace('kustomization.yaml', 'resources', '# ä\nresources');
        assert.deepEqual(await editor.prepareRename('kustomization.yaml', '"recall"'), { text: 'recall', placeholder: 'recall' });
        await editor.rename('kustomization.yaml', "'recall'", 'notes');
        assert.equal(editor.text('kustomization.yaml'), `# ä\n${KUSTOMIZATION}`);
    });

const annotated = { ...CAPABILITIES, workspace: { ...CAPABILITIES.workspace, workspaceEdit: { documentChanges: true, changeAnnotationSupport: {} } } };

export const each_edit_asks_for_confirmation = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('memory.yaml');
        const edit = await editor.renameEdit('memory.yaml', 'notes', 'recall');
        const used = edit.documentChanges.flatMap(({ edits }) => edits.map(({ annotationId }) => annotationId));
        assert.deepEqual(used.sort(), ['own', 'reference']);
        for (const id of used) {
            assert.equal(edit.changeAnnotations[id].needsConfirmation, true);
            assert.match(edit.changeAnnotations[id].label, /ArkMemory "team-a\/notes"$/);
        }
        const versions = edit.documentChanges.map(({ textDocument }) => textDocument.version);
        assert.deepEqual(versions.sort(), [1, null]);
    }, { capabilities: annotated });

export const a_client_without_versions_gets_changes = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('memory.yaml');
        const edit = await editor.renameEdit('memory.yaml', 'notes', 'recall');
        assert.deepEqual(Object.keys(edit), ['changes']);
        assert.equal(Object.keys(edit.changes).length, 2);
    }, { capabilities: { ...CAPABILITIES, workspace: {} } });

export const a_name_that_cannot_be_is_refused = async () => {
    const files = { 'memory.yaml': memory(), 'others.yaml': `${memory('taken')}---\n${memory('free').replace('team-a', 'team-b')}` };
    for (const [to, why] of [
        ['taken', /^ArkMemory "team-a\/taken" exists already, at others\.yaml:4$/],
        ['Notes', /^"Note…" \(5 characters\) is not a DNS name: /],
        ['a b', /^"a …" \(3 characters\) is not a DNS name: /],
        ['', /^the new name is empty$/],
        ['a'.repeat(254), /^the new name has 254 characters; a name has at most 253$/],
    ]) {
        assert.match(await refusal(files, ['memory.yaml', 'notes', to]), why);
    }
    await session(files, async (editor) => {
        await editor.open('memory.yaml');
        for (const to of ['free', 'a'.repeat(253), 'notes.v2']) {
            assert.ok(await editor.renameEdit('memory.yaml', 'notes', to));
        }
    });
};

export const an_object_that_keeps_its_name_is_refused = async () => {
    const arkMemory = ark('Memory', 'default', '{address: {value: "http://a"}}');
    const task = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ops}\n';
    const orlojPod = 'apiVersion: orloj.dev/v1\nkind: Agent\nmetadata: {name: a, namespace: team-a}\nspec: {model_ref: m, prompt: p}\n';
    const pack = 'apiVersion: sympozium.ai/v1alpha1\nkind: SkillPack\nmetadata: {name: memory, namespace: ops}\nspec: {skills: []}\n';
    const ensemble = 'apiVersion: sympozium.ai/v1alpha1\nkind: Ensemble\nmetadata: {name: crew, namespace: ops}\nspec: {agentConfigs: [{name: lead, systemPrompt: p}], sharedMemory: {enabled: true}}\n';
    const run = 'apiVersion: sympozium.ai/v1alpha1\nkind: AgentRun\nmetadata: {name: r, namespace: ops}\nspec: {agentRef: crew-lead, task: x}\n';
    for (const [files, at, why] of [
        [{ 'a.yaml': memory() }, ['a.yaml', 'team-a'], /^Namespace "team-a" cannot be renamed here: other objects may be in it$/],
        [{ 'a.yaml': memory('notes', REDIS) }, ['a.yaml', 'notes-redis'], /^Secret "team-a\/notes-redis" cannot be renamed here: objects outside of these files may name it$/],
        [{ 'a.yaml': task }, ['a.yaml', 'c, '], /^ConfigMap "ops\/c" cannot be renamed here/],
        [{ 'a.yaml': task.replace('ConfigMap', 'Service') }, ['a.yaml', 'c, '], /^Service "ops\/c" cannot be renamed here/],
        [{ 'a.yaml': memory(), 'b.yaml': agent('scout', 'ghost') }, ['b.yaml', 'ghost'], /^ArkMemory "team-a\/ghost" is not among the files/],
        [{ 'a.yaml': arkMemory }, ['a.yaml', 'default'], /^Memory "team-a\/default" cannot be renamed: its name has a meaning to ark$/],
        [{ 'a.yaml': pack }, ['a.yaml', 'memory, '], /its name has a meaning to sympozium$/],
        [{ 'a.yaml': memory().replaceAll('Memory', 'Settings') }, ['a.yaml', 'notes'], /^ArkSettings cannot be renamed here, only memory resources and agents/],
        [{ 'a.yaml': orlojPod, 'b.yaml': deployment('orloj.dev/agent: a', 'labels') }, ['a.yaml', 'a, '], /^b\.yaml:8: this value is made from the name/],
        [{ 'a.yaml': orlojPod, 'b.yaml': deployment('orloj.dev/agent: a', 'labels') }, ['b.yaml', 'a\n'], /./],
        [{ 'a.yaml': ensemble, 'b.yaml': run }, ['a.yaml', 'crew'], /^b\.yaml:4: this may be the name of an object that Ensemble "ops\/crew" makes/],
        [{ 'a.yaml': ark('ArkConfig', 'default', '{defaultMemory: {name: m}}', ''), 'b.yaml': ark('Memory', 'm', '{}'), 'c.yaml': ark('Memory', 'm', '{}', 'team-b') }, ['b.yaml', 'm, '], /^a\.yaml:4: this name means an object in each of several namespaces$/],
    ]) {
        assert.match(await refusal(files, [at[0], at[1]]), why);
    }
};

export const an_alias_and_a_template_are_refused = async () => {
    const anchored = `${memory('&own notes')}---\n${agent()}`.replace('llama3.2', '*own');
    const shared = `apiVersion: v1
kind: List
items:
  - {apiVersion: arkonis.dev/v1alpha1, kind: ArkAgent, metadata: {name: a, namespace: team-a}, spec: {memoryRef: &r {name: notes}}}
  - {apiVersion: arkonis.dev/v1alpha1, kind: ArkAgent, metadata: {name: b, namespace: team-a}, spec: {memoryRef: *r}}
`;
    for (const [files, at, why] of [
        [{ 'memory.yaml': memory(), 'agent.yaml': agent().replace('llama3.2', '&m notes').replace('name: notes', 'name: *m') }, 'memory.yaml', /^agent\.yaml:10: this name is an alias/],
        [{ 'memory.yaml': memory(), 'agents.yaml': shared }, 'memory.yaml', /^agents\.yaml:5: this name is an alias/],
        [{ 'memory.yaml': anchored.split('---\n')[0].replace('in-context', '*own') }, 'memory.yaml', /^memory\.yaml:4: this name cannot be changed by itself/],
        [{ 'memory.yaml': memory(), 'agent.yaml': agent('scout', '${MEMORY:=notes}') }, 'memory.yaml', /^agent\.yaml:10: a later step fills in this name$/],
        [{ 'memory.yaml': memory('${MEMORY}') }, 'memory.yaml', /^memory\.yaml:4: a later step fills in this name$/],
    ]) {
        const piece = files[at].includes('${') ? '${' : 'notes';
        assert.match(await refusal(files, [at, piece]), why);
    }
};

export const a_name_in_a_text_that_cannot_be_read_is_refused = async () => {
    const broken = { 'memory.yaml': memory(), 'broken.yaml': `${agent()}  broken: [\n` };
    assert.match(await refusal(broken, ['memory.yaml', 'notes']), /^broken\.yaml:\d+: this file cannot be read, and may name ArkMemory "team-a\/notes"$/);
    await session({ ...broken, 'broken.yaml': 'apiVersion: v1\nkind: [\n' }, async (editor) => {
        await editor.open('memory.yaml');
        assert.ok(await editor.renameEdit('memory.yaml', 'notes', 'recall'));
    });
};

export const what_is_not_a_name_is_not_renamed = () =>
    session({ 'memory.yaml': memory(), 'agent.yaml': agent() }, async (editor) => {
        await editor.open('memory.yaml');
        for (const piece of ['apiVersion', 'ArkMemory', 'in-context', 'spec', 'metadata']) {
            assert.equal(await editor.prepareRename('memory.yaml', piece), null, piece);
            assert.equal(await editor.renameEdit('memory.yaml', piece, 'recall'), null, piece);
        }
    });

export const a_cycle_of_agents_is_renamed = () =>
    session({
        'agents.yaml': ['a', 'b'].map((name, at) => `apiVersion: kubeswarm.io/v1alpha1\nkind: SwarmAgent\nmetadata: {name: ${name}, namespace: ops}\nspec: {model: m, agents: [{name: x, agentRef: {name: ${['b', 'a'][at]}}}]}\n`).join('---\n'),
    }, async (editor) => {
        await editor.open('agents.yaml');
        await editor.rename('agents.yaml', 'b}', 'c');
        assert.equal(editor.text('agents.yaml').split('name: c').length, 3, editor.text('agents.yaml'));
    });

export const ten_thousand_users_follow = () =>
    session({
        'memory.yaml': memory(),
        'agents.yaml': Array.from({ length: 10_000 }, (_, at) => agent(`a${at}`)).join('---\n'),
    }, async (editor) => {
        await editor.open('memory.yaml');
        await editor.rename('memory.yaml', 'notes', 'recall');
        assert.equal(editor.text('agents.yaml').split('name: recall\n').length, 10_001);
        assert.deepEqual(await editor.lenses('memory.yaml'), [[1, '10000 agents use this memory']]);
    });

export const a_memory_shows_how_many_agents_use_it = () =>
    session({ 'memory.yaml': `${memory()}---\n${memory('other')}`, 'agents.yaml': `${agent()}---\n${agent('second')}---\n${agent('third')}`, 'pod.yaml': pod() }, async (editor) => {
        await editor.open('memory.yaml');
        assert.deepEqual(await editor.lenses('memory.yaml'), [[1, '3 agents use this memory'], [9, 'no agent uses this memory']]);
        await editor.open('agents.yaml');
        await editor.replace('agents.yaml', 'name: notes', 'name: other');
        assert.deepEqual(await editor.lenses('memory.yaml'), [[1, '2 agents use this memory'], [9, '1 agent uses this memory']]);
        assert.deepEqual(await editor.lenses('agents.yaml'), []);
    });

export const memory_that_is_used_without_a_name_counts = () =>
    session({
        'memory.yaml': ark('Memory', 'default', '{address: {value: "http://a"}}'),
        'queries.yaml': `${ark('Query', 'one', '{input: x}')}---\n${ark('Query', 'two', '{input: x, memory: {name: default}}')}`,
    }, async (editor) => {
        await editor.open('memory.yaml');
        assert.deepEqual(await editor.lenses('memory.yaml'), [[1, '2 queries use this memory']]);
    });
