// Replays a recording, as fast as the server answers.
import { writeFileSync } from 'node:fs';
import { lsp } from './client.mjs';

const asks = {
    hover: (editor, name, position) => editor.request(lsp.HoverRequest.type, { textDocument: { uri: editor.uri(name) }, position }),
    definition: (editor, name, position) => editor.request(lsp.DefinitionRequest.type, { textDocument: { uri: editor.uri(name) }, position }),
    references: (editor, name, position) =>
        editor.request(lsp.ReferencesRequest.type, { textDocument: { uri: editor.uri(name) }, position, context: { includeDeclaration: true } }),
    actions: (editor, name, position) => editor.actions(name, { start: position, end: position }),
};

export async function play(editor, event) {
    const { kind, file, offset, removed, text } = event;
    switch (kind) {
        case 'open':
            return editor.open(file, text);
        case 'close':
            return editor.close(file);
        case 'edit':
            return editor.edit(file, offset, offset + removed, text);
        case 'save':
            return editor.save(file);
        case 'write':
            return editor.write(file, text);
        case 'checkout':
            return Object.entries(event.texts).forEach(([name, its]) => writeFileSync(editor.path(name), its));
        default:
            try {
                return await asks[kind](editor, file, editor.document(file).positionAt(offset));
            } catch (error) {
                // Nothing can be said while the choices of the repository cannot be read.
                if (error.code !== lsp.LSPErrorCodes.RequestFailed) {
                    throw error;
                }
            }
    }
}
