#include "core/model/other_names.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/text.h"
#include "core/base/wildcards.h"

namespace pmaptrain::model {
namespace {

// transformers' GPT2LMHeadModel. Its kernels are those of Conv1D, (in, out), and queries, keys and values one array.
OtherNames gpt2() {
  return {"transformer.",
          false,
          {
              {"tokens.embedding", "transformer.wte.weight"},
              {"position_embedding_0.embedding", "transformer.wpe.weight"},
              {"repeat_0.*.residual_0.layer_norm_0.scale", "transformer.h.*.ln_1.weight"},
              {"repeat_0.*.residual_0.layer_norm_0.bias", "transformer.h.*.ln_1.bias"},
              {"repeat_0.*.residual_0.attention_0.query.kernel", "transformer.h.*.attn.c_attn.weight", 0, 3},
              {"repeat_0.*.residual_0.attention_0.key.kernel", "transformer.h.*.attn.c_attn.weight", 1, 3},
              {"repeat_0.*.residual_0.attention_0.value.kernel", "transformer.h.*.attn.c_attn.weight", 2, 3},
              {"repeat_0.*.residual_0.attention_0.query.bias", "transformer.h.*.attn.c_attn.bias", 0, 3},
              {"repeat_0.*.residual_0.attention_0.key.bias", "transformer.h.*.attn.c_attn.bias", 1, 3},
              {"repeat_0.*.residual_0.attention_0.value.bias", "transformer.h.*.attn.c_attn.bias", 2, 3},
              {"repeat_0.*.residual_0.attention_0.out.kernel", "transformer.h.*.attn.c_proj.weight"},
              {"repeat_0.*.residual_0.attention_0.out.bias", "transformer.h.*.attn.c_proj.bias"},
              {"repeat_0.*.residual_1.layer_norm_0.scale", "transformer.h.*.ln_2.weight"},
              {"repeat_0.*.residual_1.layer_norm_0.bias", "transformer.h.*.ln_2.bias"},
              {"repeat_0.*.residual_1.dense_0.kernel", "transformer.h.*.mlp.c_fc.weight"},
              {"repeat_0.*.residual_1.dense_0.bias", "transformer.h.*.mlp.c_fc.bias"},
              {"repeat_0.*.residual_1.dense_1.kernel", "transformer.h.*.mlp.c_proj.weight"},
              {"repeat_0.*.residual_1.dense_1.bias", "transformer.h.*.mlp.c_proj.bias"},
              {"layer_norm_0.scale", "transformer.ln_f.weight"},
              {"layer_norm_0.bias", "transformer.ln_f.bias"},
              {"head.kernel", "lm_head.weight", 0, 1, 0, true},
          },
          {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"},
          "lm_head.weight"};
}

// transformers' LlamaForCausalLM, whose rotary embedding turns halves as ours does.
OtherNames llama() {
  return {"model.",
          true,
          {
              {"tokens.embedding", "model.embed_tokens.weight"},
              {"repeat_0.*.residual_0.rms_norm_0.scale", "model.layers.*.input_layernorm.weight"},
              {"repeat_0.*.residual_0.attention_0.query.kernel", "model.layers.*.self_attn.q_proj.weight"},
              {"repeat_0.*.residual_0.attention_0.key.kernel", "model.layers.*.self_attn.k_proj.weight"},
              {"repeat_0.*.residual_0.attention_0.value.kernel", "model.layers.*.self_attn.v_proj.weight"},
              {"repeat_0.*.residual_0.attention_0.out.kernel", "model.layers.*.self_attn.o_proj.weight"},
              {"repeat_0.*.residual_0.attention_0.query.bias", "model.layers.*.self_attn.q_proj.bias"},
              {"repeat_0.*.residual_0.attention_0.key.bias", "model.layers.*.self_attn.k_proj.bias"},
              {"repeat_0.*.residual_0.attention_0.value.bias", "model.layers.*.self_attn.v_proj.bias"},
              {"repeat_0.*.residual_0.attention_0.out.bias", "model.layers.*.self_attn.o_proj.bias"},
              {"repeat_0.*.residual_1.rms_norm_0.scale", "model.layers.*.post_attention_layernorm.weight"},
              {"repeat_0.*.residual_1.swiglu_0.gate.kernel", "model.layers.*.mlp.gate_proj.weight"},
              {"repeat_0.*.residual_1.swiglu_0.up.kernel", "model.layers.*.mlp.up_proj.weight"},
              {"repeat_0.*.residual_1.swiglu_0.down.kernel", "model.layers.*.mlp.down_proj.weight"},
              {"rms_norm_0.scale", "model.norm.weight"},
              {"head.kernel", "lm_head.weight"},
          },
          {"model.layers.*.self_attn.rotary_emb.inv_freq"},
          "lm_head.weight"};
}

// transformers' ViTForImageClassification.
OtherNames vit() {
  return {"vit.",
          true,
          {
              {"class_token_0.token", "vit.embeddings.cls_token", 0, 1, 2},
              {"position_embedding_0.embedding", "vit.embeddings.position_embeddings", 0, 1, 1},
              {"conv_0.kernel", "vit.embeddings.patch_embeddings.projection.weight"},
              {"conv_0.bias", "vit.embeddings.patch_embeddings.projection.bias"},
              {"repeat_0.*.residual_0.layer_norm_0.scale", "vit.encoder.layer.*.layernorm_before.weight"},
              {"repeat_0.*.residual_0.layer_norm_0.bias", "vit.encoder.layer.*.layernorm_before.bias"},
              {"repeat_0.*.residual_0.attention_0.out.kernel", "vit.encoder.layer.*.attention.output.dense.weight"},
              {"repeat_0.*.residual_0.attention_0.out.bias", "vit.encoder.layer.*.attention.output.dense.bias"},
              {"repeat_0.*.residual_0.attention_0.*.kernel", "vit.encoder.layer.*.attention.attention.*.weight"},
              {"repeat_0.*.residual_0.attention_0.*.bias", "vit.encoder.layer.*.attention.attention.*.bias"},
              {"repeat_0.*.residual_1.layer_norm_0.scale", "vit.encoder.layer.*.layernorm_after.weight"},
              {"repeat_0.*.residual_1.layer_norm_0.bias", "vit.encoder.layer.*.layernorm_after.bias"},
              {"repeat_0.*.residual_1.dense_0.kernel", "vit.encoder.layer.*.intermediate.dense.weight"},
              {"repeat_0.*.residual_1.dense_0.bias", "vit.encoder.layer.*.intermediate.dense.bias"},
              {"repeat_0.*.residual_1.dense_1.kernel", "vit.encoder.layer.*.output.dense.weight"},
              {"repeat_0.*.residual_1.dense_1.bias", "vit.encoder.layer.*.output.dense.bias"},
              {"layer_norm_0.scale", "vit.layernorm.weight"},
              {"layer_norm_0.bias", "vit.layernorm.bias"},
              {"head.kernel", "classifier.weight"},
              {"head.bias", "classifier.bias"},
          },
          {}};
}

// torchvision's ResNet.
OtherNames resnet() {
  return {"",
          true,
          {
              {"layer*_*.shortcut.conv_0.kernel", "layer*.*.downsample.0.weight"},
              {"layer*_*.shortcut.batch_norm_0.scale", "layer*.*.downsample.1.weight"},
              {"layer*_*.shortcut.batch_norm_0.bias", "layer*.*.downsample.1.bias"},
              {"layer*_*.shortcut.batch_norm_0.mean", "layer*.*.downsample.1.running_mean"},
              {"layer*_*.shortcut.batch_norm_0.var", "layer*.*.downsample.1.running_var"},
              {"layer*_*.conv1.kernel", "layer*.*.conv1.weight"},
              {"layer*_*.conv2.kernel", "layer*.*.conv2.weight"},
              {"layer*_*.conv3.kernel", "layer*.*.conv3.weight"},
              {"layer*_*.bn*.scale", "layer*.*.bn*.weight"},
              {"layer*_*.bn*.bias", "layer*.*.bn*.bias"},
              {"layer*_*.bn*.mean", "layer*.*.bn*.running_mean"},
              {"layer*_*.bn*.var", "layer*.*.bn*.running_var"},
              {"conv1.kernel", "conv1.weight"},
              {"bn1.scale", "bn1.weight"},
              {"bn1.bias", "bn1.bias"},
              {"bn1.mean", "bn1.running_mean"},
              {"bn1.var", "bn1.running_var"},
              {"head.kernel", "fc.weight"},
              {"head.bias", "fc.bias"},
          },
          {"*num_batches_tracked"}};
}

}  // namespace

const OtherNames& other_names(ParameterLayout layout) {
  static const OtherNames all[] = {gpt2(), llama(), vit(), resnet()};
  switch (layout) {
    case ParameterLayout::hf_gpt2: return all[0];
    case ParameterLayout::hf_llama: return all[1];
    case ParameterLayout::hf_vit: return all[2];
    case ParameterLayout::torchvision_resnet: return all[3];
    case ParameterLayout::flax:
    case ParameterLayout::torch: break;
  }
  std::abort();  // they have no names of one kind of model
}

const OtherName* find_other_name(ParameterLayout layout, std::string_view parameter) {
  const std::vector<OtherName>& names = other_names(layout).names;
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const OtherName& name) { return matches(name.ours, parameter); });
  return found == names.end() ? nullptr : &*found;
}

std::vector<std::string> spellings(ParameterLayout layout, const std::string& name) {
  if (!has_other_names(layout)) return {name};
  const std::string_view prefix = other_names(layout).prefix;
  if (prefix.empty() || !name.starts_with(prefix)) return {name};
  return {name, name.substr(prefix.size())};
}

bool is_ignored(ParameterLayout layout, std::string_view tensor) {
  if (!has_other_names(layout)) return false;
  const OtherNames& names = other_names(layout);
  return std::any_of(names.ignored.begin(), names.ignored.end(), [&](std::string_view pattern) {
    return matches(pattern, tensor) ||
           (pattern.starts_with(names.prefix) && matches(pattern.substr(names.prefix.size()), tensor));
  });
}

}  // namespace pmaptrain::model
